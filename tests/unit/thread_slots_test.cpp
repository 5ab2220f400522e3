// SPDX-License-Identifier: MIT OR Apache-2.0
// Rung thread, where libc can not tell of a thread's end: pthread_setspecific fails, as it does when memory is short (the
// linker's --wrap). Run with TERRACE_RUNG=thread.
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <atomic>
#include <cerrno>
#include <gtest/gtest.h>
#include <pthread.h>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> fails{false};
std::atomic<int> failures{0};

}  // namespace

extern "C" {
int __real_pthread_setspecific(pthread_key_t key, const void* value);
int __wrap_pthread_setspecific(pthread_key_t key, const void* value) {
  if (!fails) return __real_pthread_setspecific(key, value);
  ++failures;
  return ENOMEM;
}
}

namespace terrace::heap {
namespace {

class ThreadSlotsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (heap.core().rung() != percpu::Rung::thread) GTEST_SKIP() << "not on rung thread";
    terrace_free(terrace_malloc(100));
  }
  void TearDown() override {
    fails = false;
    EXPECT_STREQ(heap.check_invariants(), nullptr);
  }
  static int slots() {
    int n = 0;
    for (const level::Slot* s = heap.core().of_threads().all(); s != nullptr; s = s->of_thread.next) ++n;
    return n;
  }
  static void churn() {
    std::vector<void*> blocks;
    for (std::size_t size = 1; size < 400000; size += size / 3 + 1) blocks.push_back(terrace_malloc(size));
    for (void* p : blocks) {
      ASSERT_NE(p, nullptr);
      terrace_free(p);
    }
  }
};

TEST_F(ThreadSlotsTest, a_thread_that_nobody_could_clean_up_after_has_no_slot_and_leaves_none) {
  std::thread([] { churn(); }).join();  // a slot that is free again
  const int before = slots();
  fails = true;
  failures = 0;
  int without = 0;  // looked at later: GoogleTest needs such keys itself
  for (int i = 0; i < 10; ++i) {
    std::thread([&without] {
      churn();
      without += heap.core().current() == nullptr ? 1 : 0;
    }).join();
  }
  fails = false;
  EXPECT_EQ(without, 10);
  EXPECT_GE(failures, 10);
  EXPECT_EQ(slots(), before);
}

TEST_F(ThreadSlotsTest, it_gets_one_when_libc_has_memory_again) {
  fails = true;
  std::thread([] {
    churn();
    const bool without = heap.core().current() == nullptr;
    fails = false;
    EXPECT_TRUE(without);
    churn();
    EXPECT_NE(heap.core().current(), nullptr);
  }).join();
  const int before = slots();
  std::thread([] { churn(); }).join();
  EXPECT_EQ(slots(), before) << "its slot was left at its end";
}

TEST_F(ThreadSlotsTest, of_two_at_once_each_gives_its_slot_back) {
  fails = true;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 20; ++n) churn();
    });
  for (std::thread& t : threads) t.join();
  fails = false;
  const int before = slots();
  EXPECT_LE(before, 6);
  std::thread([] { churn(); }).join();
  EXPECT_EQ(slots(), before);
}

}  // namespace
}  // namespace terrace::heap
