// SPDX-License-Identifier: MIT OR Apache-2.0
// Stacks by rules are those that libc finds.
#include "os/frame_rules.h"

#include <alloca.h>
#include <csignal>
#include <cstdlib>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include <vector>

namespace terrace::os {
namespace {

using Frames = std::vector<void*>;

// From the caller of this function on, as both see it.
__attribute__((noinline)) void compare() {
  if (!has_frame_rules()) GTEST_SKIP() << "the C library does not say where tables are";
  void* ours[256];
  void* libcs[256];
  const int n = unwind_by_rules(ours, 256);
  const int m = backtrace(libcs, 256);
  ASSERT_GT(n, 2);
  // The innermost frame of each is in this function, at two places.
  ASSERT_EQ(Frames(ours + 1, ours + n), Frames(libcs + 1, libcs + m));
}

__attribute__((noinline)) int recurse(int depth) {
  if (depth == 0) {
    compare();
    return 0;
  }
  return recurse(depth - 1) + 1;
}

TEST(Unwind, plain_calls) { compare(); }

TEST(Unwind, deep_calls) { EXPECT_EQ(recurse(100), 100); }

__attribute__((noinline)) int with_variable_frame(std::size_t bytes) {
  auto* const p = static_cast<volatile char*>(alloca(bytes));
  p[0] = 1;
  p[bytes - 1] = 1;
  compare();
  return p[0];
}

TEST(Unwind, frames_of_a_length_that_varies) {
  for (const std::size_t bytes : {16U, 333U, 5000U, 70000U}) EXPECT_EQ(with_variable_frame(bytes), 1);
}

__attribute__((noinline)) int with_aligned_frame(int n) {
  alignas(128) volatile char aligned[256] = {};
  auto* const p = static_cast<volatile char*>(alloca(static_cast<std::size_t>(n)));
  p[0] = aligned[1];
  compare();
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(&aligned[0]) % 128) + p[0];
}

TEST(Unwind, frames_that_align_themselves) { EXPECT_EQ(with_aligned_frame(100), 0); }

TEST(Unwind, through_libc) {
  int numbers[] = {3, 1, 2};
  std::qsort(numbers, 3, sizeof *numbers, [](const void* a, const void* b) {
    compare();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
  EXPECT_EQ(numbers[0], 1);
}

TEST(Unwind, from_the_start_of_a_thread) {
  std::thread([] { EXPECT_EQ(recurse(3), 3); }).join();
}

volatile int handled;

TEST(Unwind, out_of_a_signal_handler) {
  handled = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) {
    compare();
    handled = handled + 1;
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  raise(SIGUSR1);
  // On a stack of its own.
  static char stack[256 * 1024];
  const stack_t alternate = {.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof stack};
  ASSERT_EQ(sigaltstack(&alternate, nullptr), 0);
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  raise(SIGUSR1);
  EXPECT_EQ(handled, 2);
  const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  EXPECT_EQ(sigaltstack(&none, nullptr), 0);
}

TEST(Unwind, no_more_than_is_wanted) {
  if (!has_frame_rules()) GTEST_SKIP() << "the C library does not say where tables are";
  void* frames[4] = {};
  EXPECT_EQ(unwind_by_rules(frames, 3), 3);
  EXPECT_EQ(frames[3], nullptr);
}

}  // namespace
}  // namespace terrace::os
