// SPDX-License-Identifier: MIT OR Apache-2.0
// Large blocks that slots keep for the next request, on the rung that TERRACE_RUNG names.
#include "census.h"
#include "introspect/statistics.h"
#include "terrace/malloc.h"

#include <atomic>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

namespace terrace::heap {
namespace {

using introspect::Column, introspect::Level, introspect::Snapshot;

std::unique_ptr<Snapshot> snapshot() {
  auto s = std::make_unique<Snapshot>();
  introspect::take_snapshot(*s);
  return s;
}

std::uint64_t large(const Snapshot& s, Column column) {
  return s.by_class[static_cast<std::size_t>(Level::large)][0].get(column);
}

unsigned kept_blocks() {
  unsigned n = 0;
  const auto count = [&n](const level::Slot& slot) {
    for (const Word w : slot.large) n += names_something(w) ? 1 : 0;
  };
  heap.core().for_each(count);
  return n;
}

class LargeCache : public testing::Test {
 protected:
  void SetUp() override { terrace_malloc_trim(0); }
  void TearDown() override { terrace_malloc_trim(0); }
};

// A thread may be moved to another cpu between the two calls, but not each time.
TEST_F(LargeCache, a_block_that_was_freed_is_the_next_one) {
  int same = 0;
  for (int i = 0; i < 100; ++i) {
    void* const p = terrace_malloc(mib);
    terrace_free(p);
    void* const q = terrace_malloc(mib - 100 * kib);
    same += p == q ? 1 : 0;
    terrace_free(q);
  }
  EXPECT_GE(same, 50);
}

TEST_F(LargeCache, what_is_kept_is_not_live) {
  auto before = snapshot();
  std::vector<void*> blocks;
  for (const std::size_t size : {300 * kib, 700 * kib, 1500 * kib, 3 * mib}) blocks.push_back(terrace_malloc(size));
  auto during = snapshot();
  EXPECT_EQ(during->live_large - before->live_large, 300 * kib + 700 * kib + 1500 * kib + 3 * mib);
  for (void* const p : blocks) terrace_free(p);
  auto after = snapshot();
  EXPECT_EQ(after->live_large, before->live_large);
  EXPECT_GE(kept_blocks(), 1U);
  EXPECT_EQ(large(*after, Column::allocations) - large(*after, Column::frees), take_census().large_blocks);
  EXPECT_EQ(large(*after, Column::allocations) - large(*before, Column::allocations), 4U);
}

TEST_F(LargeCache, a_block_that_leaves_more_than_a_quarter_becomes_a_span) {
  terrace_free(terrace_malloc(512 * kib - 4 * kib));
  ASSERT_EQ(kept_blocks(), 1U);
  void* const p = terrace_malloc(300 * kib);  // of the same word
  EXPECT_EQ(kept_blocks(), 0U);
  const auto granules = heap.spans().window().record(heap.spans().window().index_of(p)).granules;
  EXPECT_LE(granules, 6U);
  terrace_free(p);
}

TEST_F(LargeCache, calloc_of_a_kept_block_reads_zero) {
  for (int i = 0; i < 20; ++i) {
    auto* const p = static_cast<unsigned char*>(terrace_calloc(1, 400 * kib));
    for (std::size_t at = 0; at < 400 * kib; ++at) ASSERT_EQ(p[at], 0) << at;
    std::memset(p, 0x5a, 400 * kib);
    terrace_free(p);
  }
}

TEST_F(LargeCache, trim_gives_all_of_it_back) {
  terrace_free(terrace_malloc(mib));
  ASSERT_EQ(kept_blocks(), 1U);
  EXPECT_GE(heap.large_granted(), mib);
  terrace_malloc_trim(0);
  EXPECT_EQ(kept_blocks(), 0U);
  EXPECT_EQ(heap.large_granted(), 0U);
  EXPECT_EQ(heap.spans().dirty_bytes(), 0U);
}

TEST_F(LargeCache, an_end_of_a_thread_gives_back_what_its_slot_keeps) {
  std::thread([] { terrace_free(terrace_malloc(mib)); }).join();
  EXPECT_LE(kept_blocks(), heap.core().rung() == percpu::Rung::thread ? 0U : 1U);
}

// One thread after the other, and all of them stay: on the rung of threads each has a slot that may keep 4 MiB.
TEST_F(LargeCache, grants_stop_at_half_of_the_bound) {
  constexpr int threads = 16;
  std::atomic<int> turn = 0;
  std::atomic<bool> over = false;
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      while (turn != i) std::this_thread::yield();
      terrace_free(terrace_malloc(4 * mib));
      ++turn;
      while (!over) std::this_thread::yield();
    });
  }
  while (turn != threads) std::this_thread::yield();
  EXPECT_GE(heap.large_granted(), 4 * mib);
  EXPECT_LE(heap.large_granted(), 8 * mib);  // of 16 MiB, since hardly anything is live
  over = true;
  for (std::thread& t : all) t.join();
}

TEST_F(LargeCache, blocks_that_are_kept_are_no_blocks_to_free) {
  void* const p = terrace_malloc(mib);
  terrace_free(p);
  EXPECT_DEATH(terrace_free(p), "free\\(\\): double free of");
  EXPECT_DEATH(terrace_free(terrace_realloc(p, 2 * mib)), "realloc\\(\\): invalid pointer");
  EXPECT_DEATH(terrace_malloc_usable_size(p), "invalid pointer");
}

}  // namespace
}  // namespace terrace::heap
