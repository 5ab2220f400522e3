// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/frames.h"
#include "profile/draw.h"
#include "profile/profiler.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <pthread.h>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace terrace::profile {
namespace {

TEST(Draw, has_the_logarithm_right) {
  for (double x = 1; x > 1e-16; x *= 0.987654321) EXPECT_NEAR(natural_log(x), std::log(x), 1e-9 + 1e-9 * -std::log(x)) << x;
  EXPECT_EQ(natural_log(1), 0);
}

TEST(Draw, knows_what_a_sample_stands_for) {
  for (double x = 1e-9; x < 1e4; x *= 1.37) EXPECT_NEAR(one_minus_exp(x) / -std::expm1(-x), 1, 1e-9) << x;
  EXPECT_EQ(bytes_estimated(100, 112, 512 << 10), std::llround(-100 / std::expm1(-112.0 / (512 << 10))));
  EXPECT_EQ(bytes_estimated(1 << 30, 1 << 30, 1), 1 << 30);
}

TEST(Draw, has_the_mean_and_the_probability_of_a_poisson_process) {
  constexpr std::uint64_t period = 1000;
  constexpr int draws = 200'000;
  for (const std::uint64_t size : {1U, 16U, 300U, 1000U, 5000U}) {
    const double p = -std::expm1(-static_cast<double>(size) / period);
    double drawn = 0, sum = 0;
    for (int i = 0; i < draws; ++i) {
      drawn += is_drawn(next_random(), size, period) ? 1 : 0;
      sum += static_cast<double>(first_drawn(next_random(), size, period));
    }
    EXPECT_NEAR(drawn / draws, p, 6 * std::sqrt(p * (1 - p) / draws)) << size;
    EXPECT_NEAR(sum / draws, 1 / p, 6 * std::sqrt((1 - p) / draws) / p + 1e-9) << size;  // geometric
  }
  EXPECT_TRUE(is_drawn(~std::uint64_t{0}, 1, 1));  // the shortest distance
  EXPECT_GE(first_drawn(0, 1, std::uint64_t{1} << 55), std::uint64_t{1} << 55);
}

void fill(Table& table, std::uint32_t n, std::uint64_t address) {
  Sample& s = table.begin_writing(n);
  s.address = address;
  s.weighed = s.period = 100;
  table.publish(n);
}

TEST(Table, gives_each_record_once) {
  const auto table = std::make_unique<Table>();
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 3000; ++i) EXPECT_TRUE(numbers.insert(table->take()).second);
  EXPECT_FALSE(numbers.contains(0));
  for (const std::uint32_t n : numbers) table->give(n);
  const std::uint32_t used = table->used();
  for (int i = 0; i < 3000; ++i) EXPECT_TRUE(numbers.contains(table->take()));
  EXPECT_EQ(table->used(), used);
}

TEST(Table, says_when_it_is_full) {
  const auto table = std::make_unique<Table>();
  for (std::uint32_t i = 1; i < records_per_chunk * most_chunks; ++i) ASSERT_EQ(table->take(), i);
  EXPECT_EQ(table->take(), 0U);
  table->give(77);
  EXPECT_EQ(table->take(), 77U);
}

TEST(Table, serves_threads_at_once) {
  const auto table = std::make_unique<Table>();
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&table, t] {
      for (int i = 0; i < 20'000; ++i) {
        const std::uint32_t n = table->take();
        fill(*table, n, t);
        EXPECT_EQ(table->at(n).address, t);
        table->drop(n);
      }
    });
  }
  threads.clear();
  for (std::uint32_t n = 1; n < table->used(); ++n) {
    EXPECT_NE(table->at(n).state, State::live);
    EXPECT_EQ(table->at(n).version % 2, 0U);
  }
}

TEST(Table, keeps_what_was_live_at_the_peak) {
  const auto table = std::make_unique<Table>();
  const auto at_peak = [&] {
    std::size_t count = 0;
    for (std::uint32_t n = 1; n < table->used(); ++n) {
      const Sample& s = table->at(n);
      count +=
          (s.state == State::live && s.born < table->mark()) || (s.state == State::ghost && s.died == table->mark()) ? 1 : 0;
    }
    return count;
  };
  std::vector<std::uint32_t> live;
  const auto grow = [&](int by) {
    for (int i = 0; i < by; ++i) {
      live.push_back(table->take());
      fill(*table, live.back(), 1);
    }
  };
  grow(20);
  EXPECT_EQ(at_peak(), 20U);
  for (int i = 0; i < 15; ++i) {
    table->drop(live.back());
    live.pop_back();
  }
  EXPECT_EQ(at_peak(), 20U);
  grow(10);  // 15 live, of which 5 were there at the peak
  EXPECT_EQ(at_peak(), 20U);
  grow(15);
  EXPECT_EQ(at_peak(), 30U);
  const std::uint32_t used = table->used();
  grow(15);  // 6 of them in what the ghosts have left
  EXPECT_EQ(table->used(), used + 9);
}

// The frames of these functions have frame pointers, whatever the flags.
__attribute__((noinline)) unsigned innermost(std::uint64_t* pcs) {
  return os::follow_frames(__builtin_frame_address(0), pcs, 8);
}
__attribute__((noinline)) unsigned middle(std::uint64_t* pcs) {
  const unsigned n = innermost(pcs);
  __asm__ volatile("" ::"r"(__builtin_frame_address(0)) : "memory");
  return n;
}

TEST(Frames, are_followed_as_far_as_they_go) {
  std::uint64_t pcs[8] = {};
  EXPECT_GE(middle(pcs), 2U);
  const auto within = [](std::uint64_t pc, auto* function) { return pc - reinterpret_cast<std::uintptr_t>(function) < 400; };
  EXPECT_TRUE(within(pcs[0], &middle));
  const std::uintptr_t loop[2] = {reinterpret_cast<std::uintptr_t>(loop), 0x1234567};
  EXPECT_EQ(os::follow_frames(loop, pcs, 8), 1U);
  const std::uintptr_t wild[2] = {reinterpret_cast<std::uintptr_t>(loop) + 512 * 1024 * 1024, 0x1234567};
  EXPECT_EQ(os::follow_frames(wild, pcs, 8), 1U);
  EXPECT_EQ(os::follow_frames(wild, pcs, 8), 1U);  // there was no memory the first time
  EXPECT_EQ(os::follow_frames(nullptr, pcs, 8), 0U);
}

// Not instrumented: AddressSanitizer keeps locals elsewhere than on the stack.
__attribute__((noinline, no_sanitize("address"))) void copy_stack_with(std::uint64_t word, os::StackCopy& copy) {
  volatile std::uint64_t on_stack = word;
  os::copy_stack(copy, __builtin_frame_address(0));
  on_stack = 0;  // the call before it is no tail call
}

TEST(Frames, are_copied_with_the_registers) {
  const auto copy = std::make_unique<os::StackCopy>();
  constexpr std::uint64_t mark = 0x1122334455667788;
  copy_stack_with(mark, *copy);
  ASSERT_GE(copy->bytes, 64U);
  bool found = false;
  for (std::uint64_t i = 0; i + 8 <= copy->bytes; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, copy->data + i, sizeof word);
    found = found || word == mark;
  }
  EXPECT_TRUE(found);
}

TEST(Frames, are_copied_without_what_lies_above_the_stack) {
  std::thread([] {
    const auto copy = std::make_unique<os::StackCopy>();
    os::copy_stack(*copy, __builtin_frame_address(0));
    const std::uint64_t end = copy->registers[os::StackCopy::stack_pointer] + copy->bytes;
    EXPECT_LE(end, std::uint64_t{pthread_self()});
    EXPECT_GE(copy->bytes, 64U);
  }).join();
}

constexpr std::size_t kib = 1024;

// The end of what is copied of the calling stack.
std::uint64_t end_of_copy() {
  static os::StackCopy copy;
  os::copy_stack(copy, __builtin_frame_address(0));
  return copy.registers[os::StackCopy::stack_pointer] + copy.bytes;
}

// 4 KiB of stack each.
__attribute__((noinline)) std::uint64_t end_of_copy_deeper(int levels) {
  volatile char room[4 * kib];
  room[0] = 0;
  return levels == 0 ? end_of_copy() : end_of_copy_deeper(levels - 1) + static_cast<std::uint64_t>(room[0]);
}

// A handler's stack below a thread's, both in one mapping, and a page between them that can not be read.
struct Stacks {
#if defined(TERRACE_SANITIZED)
  static constexpr std::size_t own = 4096 * kib;  // they refuse a thread less
#else
  static constexpr std::size_t own = 96 * kib;
#endif
  static constexpr std::size_t handlers = 64 * kib, hole = 4 * kib;
  char* const memory =
      static_cast<char*>(mmap(nullptr, handlers + hole + own, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ~Stacks() { munmap(memory, handlers + hole + own); }
  std::uint64_t end_of_handlers() const { return reinterpret_cast<std::uintptr_t>(memory) + handlers; }
};

std::uint64_t end_in_handler = 0;

// The calling thread copies its stack there at SIGUSR1. What it had for a stack of handlers.
stack_t copy_on_stack(void* memory, std::size_t bytes) {
  const stack_t alternative{.ss_sp = memory, .ss_flags = 0, .ss_size = bytes};
  stack_t before{};
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = [](int) { end_in_handler = end_of_copy(); };
  EXPECT_EQ(sigaltstack(&alternative, &before), 0);
  EXPECT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  return before;
}

TEST(Frames, are_copied_up_to_memory_that_can_not_be_read) {
  Stacks stacks;
  ASSERT_EQ(mprotect(stacks.memory + Stacks::handlers, Stacks::hole, PROT_NONE), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, stacks.memory + Stacks::handlers + Stacks::hole, Stacks::own), 0);
  pthread_t thread;
  const auto body = [](void* given) -> void* {
    const auto& its = *static_cast<const Stacks*>(given);
    copy_on_stack(its.memory, Stacks::handlers);
    const std::uint64_t own = std::uint64_t{pthread_self()};
    for (const int levels : {0, 5, 2, 9}) {  // what was found out of one stack is not believed of the other
      EXPECT_GT(end_of_copy_deeper(levels), its.end_of_handlers() + Stacks::hole);
      EXPECT_LE(end_of_copy_deeper(levels), own);
      raise(SIGUSR1);
      EXPECT_LE(end_in_handler, its.end_of_handlers());
      EXPECT_GT(end_in_handler, its.end_of_handlers() - Stacks::handlers);
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &stacks), 0);
  pthread_join(thread, nullptr);
}

// The highest place below that address where so much can be mapped, mapped.
char* map_below(std::uintptr_t address, std::size_t bytes) {
  for (std::uintptr_t end = address / (4 * kib) * (4 * kib);; end -= 4 * kib) {
    void* const memory = mmap(reinterpret_cast<void*>(end - bytes), bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MAP_FAILED) return static_cast<char*>(memory);
  }
}

// A handler's stack right below the first thread's variables, with a page between them that goes later: neither is the
// thread's.
TEST(Frames, of_the_first_thread_on_another_stack_are_not_remembered) {
  static thread_local int variable = 0;
  ASSERT_EQ(gettid(), getpid());
  constexpr std::size_t stack = 32 * kib, between = 4 * kib;
  char* const memory = map_below(reinterpret_cast<std::uintptr_t>(&variable), stack + between);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(memory) + stack;
  const stack_t before = copy_on_stack(memory, stack);
  raise(SIGUSR1);
  EXPECT_GT(end_in_handler, end - stack);
  ASSERT_EQ(munmap(memory + stack, between), 0);
  raise(SIGUSR1);
  EXPECT_LE(end_in_handler, end);
  sigaltstack(&before, nullptr);
  munmap(memory, stack);
}

}  // namespace
}  // namespace terrace::profile
