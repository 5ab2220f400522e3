// SPDX-License-Identifier: MIT OR Apache-2.0
// Children that run on the thread pointer of a thread that goes on, and a parent that waits for its child of vfork.
#include "arch/cpu.h"
#include "heap/fast_path/fast_path.h"
#include "heap/heap.h"
#include "os/io.h"
#include "os/threads.h"
#include "terrace/malloc.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace terrace::heap {
namespace {

constexpr int calls_until_somebody_looks = 1000;

bool is_on() { return __atomic_load_n(&fast_path.size_limit, __ATOMIC_RELAXED) != 0; }

void allocate_for_a_while() {
  for (int i = 0; i < calls_until_somebody_looks; ++i) terrace_free(terrace_malloc(100));
}

class CompanionsTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(TERRACE_SANITIZED)
    GTEST_SKIP() << "a sanitizer has thread-local data of its own";
#endif
    allocate_for_a_while();
    if (!is_on()) GTEST_SKIP() << "no sequences here";
  }
};

struct Child {
  std::atomic<bool> looked{false}, may_end{false};
  bool is_companion = false, is_closed = false;
  const void* identity = nullptr;
};

int look(void* argument) {
  Child& me = *static_cast<Child*>(argument);
  me.is_companion = os::thread_state().companion;
  me.is_closed = level::Closed::to_this_thread();
  me.identity = os::this_thread();
  me.looked = true;
  while (!me.may_end) sched_yield();
  return 0;
}

TEST_F(CompanionsTest, has_a_state_of_its_own_and_the_fast_path_is_off_until_the_kernel_says_that_it_is_gone) {
  constexpr std::size_t stack_bytes = 65536;
  void* const stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(stack, MAP_FAILED);
  Child child;
  os::Companion* const c = heap.add_companion(arch::thread_pointer());
  ASSERT_NE(c, nullptr);
  const int pid = clone(look, static_cast<std::byte*>(stack) + stack_bytes,
                        CLONE_VM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, &child, nullptr, nullptr, &c->tid);
  ASSERT_GT(pid, 0);
  while (!child.looked) sched_yield();
  allocate_for_a_while();
  EXPECT_FALSE(is_on());
  EXPECT_FALSE(os::single_threaded());
  EXPECT_TRUE(child.is_companion);
  EXPECT_TRUE(child.is_closed);
  EXPECT_NE(child.identity, os::this_thread());
  EXPECT_FALSE(os::thread_state().companion);
  EXPECT_FALSE(level::Closed::to_this_thread());
  // A child of vfork, a companion, too, ends meanwhile: that does not turn it on.
  const FastPathSwitch::Entered within = heap.enter_vfork();
  ASSERT_NE(within.child_tid, nullptr);
  os::end_companion(within.child_tid);
  heap.leave_vfork(within.before);
  allocate_for_a_while();
  EXPECT_FALSE(is_on());
  child.may_end = true;
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  allocate_for_a_while();
  EXPECT_TRUE(is_on());
  munmap(stack, stack_bytes);
}

TEST_F(CompanionsTest, one_that_the_kernel_does_not_tell_of_is_gone_when_its_tid_is) {
  os::Companion* const c = heap.add_companion(arch::thread_pointer());
  ASSERT_NE(c, nullptr);
  const pid_t other = fork();
  if (other == 0) _exit(0);
  os::probe(*c, other);  // not waited for: the tid is in use
  allocate_for_a_while();
  EXPECT_FALSE(is_on());
  ASSERT_EQ(waitpid(other, nullptr, 0), other);
  allocate_for_a_while();
  EXPECT_TRUE(is_on());
}

// What it holds when the companion ends must be counted where it is given back.
TEST_F(CompanionsTest, a_new_thread_on_its_thread_pointer_has_the_threads_own_state) {
  os::Companion* c = nullptr;
  std::uintptr_t listed = 0;
  std::thread([&] { c = heap.add_companion(listed = arch::thread_pointer()); }).join();
  ASSERT_NE(c, nullptr);
  bool same_memory = false, own_state = false;
  std::thread([&] {
    same_memory = arch::thread_pointer() == listed;
    own_state = &os::thread_state() == &os::state_of_thread;
  }).join();
  os::end_companion(&c->tid);
  allocate_for_a_while();
  EXPECT_TRUE(is_on());
  if (!same_memory) GTEST_SKIP() << "libc gave the new thread other memory";
  EXPECT_TRUE(own_state);
}

TEST_F(CompanionsTest, a_parent_that_waits_leaves_the_others_on_the_fast_path) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) sched_yield();
  });
  const std::uint64_t before = heap.enter_vfork().before;
  EXPECT_TRUE(is_on());
  EXPECT_FALSE(arch::registered(percpu::ladder().area));
  EXPECT_TRUE(level::Closed::to_this_thread());
  allocate_for_a_while();
  const std::uint64_t within = heap.enter_vfork().before;
  heap.leave_vfork(within);
  EXPECT_FALSE(arch::registered(percpu::ladder().area));
  heap.leave_vfork(before);
  EXPECT_TRUE(arch::registered(percpu::ladder().area));
  EXPECT_FALSE(level::Closed::to_this_thread());
  EXPECT_TRUE(is_on());
  stop = true;
  other.join();
}

}  // namespace
}  // namespace terrace::heap
