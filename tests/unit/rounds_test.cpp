// SPDX-License-Identifier: MIT OR Apache-2.0
// Rounds of maintenance on a machine of 1,000 cpus and 64 last-level caches, of which this test plays each cpu in turn: the
// topology, the cpu number and the clock come from here (the linker's --wrap). Run with TERRACE_RUNG=getcpu and a
// budget for so many cpus.
#include "described_machine.h"
#include "heap/heap.h"
#include "os/clock.h"
#include "terrace/malloc.h"

#include <gtest/gtest.h>
#include <vector>

namespace {

constexpr unsigned cpus = 1000, caches = 64;
using machine::here;
constinit std::uint64_t milliseconds = 1;

}  // namespace

namespace terrace::os {
std::uint64_t wrap_clock() noexcept asm("__wrap__ZN7terrace2os19coarse_millisecondsEv");
std::uint64_t wrap_clock() noexcept { return milliseconds; }
}  // namespace terrace::os

void machine::describe(terrace::topology::Topology& out) noexcept {
  out.cpu_count = cpus;
  out.llc_count = caches;
  for (unsigned c = 0; c < cpus; ++c) out.llc[c] = static_cast<std::uint8_t>(c / 16);
}

namespace terrace::heap {
namespace {

constexpr unsigned piece = 64;
constexpr unsigned piece_of_magazines = piece + level::most_shards - 1;  // the shards of a cache are looked at together
constexpr std::size_t size = 128;

class RoundsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (heap.core().rung() != percpu::Rung::getcpu || heap.budget() < 256 * mib) GTEST_SKIP() << "not as it is to be run";
    ASSERT_EQ(heap.core().slot_count(), cpus);
    ASSERT_EQ(heap.depots().depots(), caches);
    large_ = terrace_malloc(8 * mib);
    begin_round();  // the first look only starts the clock
    begin_round();
    finish_round();
  }
  void TearDown() override {
    here = 0;
    if (HasFatalFailure() || IsSkipped()) return;
    EXPECT_STREQ(heap.check_invariants(), nullptr);
    terrace_malloc_trim(0);
  }
  // A look at the clock: one piece of a round, if one is due or unfinished. The block is one of those that slots do not keep.
  void look() {
    terrace_free(large_);
    large_ = terrace_malloc(8 * mib);
  }
  void begin_round() {
    milliseconds += 1000;
    look();
  }
  void finish_round() {
    for (unsigned i = 0; i < 200; ++i) look();
  }
  // Every cpu has blocks in its slot.
  static void use_all_slots() {
    for (unsigned c = 0; c < cpus; ++c) {
      here = static_cast<int>(c);
      terrace_free(terrace_malloc(size));
    }
    here = 0;
  }
  static unsigned slots_in_use() {
    unsigned n = 0;
    for (unsigned i = 0; i < cpus; ++i) {
      bool any = false;
      for (const std::uint64_t w : level::words_of(heap.core().slot(i))) any = any || w >> 8 != 0;
      n += any ? 1 : 0;
    }
    return n;
  }
  static unsigned magazines() {
    unsigned n = 0;
    for (unsigned i = 0; i < heap.depots().count(); ++i) {
      for (std::size_t key = 0; key < level::block_keys; ++key) n += heap.depots().at(i).stack(key).size();
    }
    return n;
  }

  void* large_ = nullptr;
};

TEST_F(RoundsTest, slots_that_nobody_touches_are_emptied_in_pieces) {
  use_all_slots();
  ASSERT_EQ(slots_in_use(), cpus);
  begin_round();  // each is looked at for the first time
  finish_round();
  EXPECT_EQ(slots_in_use(), cpus) << "they may be in use";
  unsigned left = cpus, looks = 0;
  for (begin_round(); slots_in_use() != 0 && looks < cpus; look(), ++looks) {
    const unsigned now = slots_in_use();
    EXPECT_LE(left - now, piece);
    left = now;
  }
  EXPECT_EQ(slots_in_use(), 0U);
  EXPECT_EQ(looks, (cpus - 1) / piece) << "all pieces are full";
}

TEST_F(RoundsTest, a_slot_that_is_used_between_two_rounds_keeps_its_blocks) {
  constexpr unsigned busy = 700;
  use_all_slots();
  begin_round();
  finish_round();
  here = busy;
  void* const p = terrace_malloc(size);
  here = 0;
  begin_round();
  finish_round();
  EXPECT_EQ(slots_in_use(), 1U) << "the magazine that the block was popped from has changed";
  here = busy;
  terrace_free(p);
}

TEST_F(RoundsTest, depots_lose_a_magazine_of_each_stack_in_each_round_in_pieces) {
  std::vector<void*> blocks;
  for (unsigned i = 0; i < 600 * cpus; ++i) blocks.push_back(terrace_malloc(size));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    here = static_cast<int>(i * cpus / blocks.size());
    terrace_free(blocks[i]);
  }
  here = 0;
  finish_round();
  const unsigned before = magazines();
  ASSERT_GT(before, 4 * piece_of_magazines);
  begin_round();
  unsigned left = magazines();
  for (unsigned looks = 0; looks < 100; ++looks) {
    look();
    const unsigned now = magazines();
    EXPECT_LE(left - now, piece_of_magazines);
    left = now;
  }
  EXPECT_LT(left, before);
  EXPECT_GE(left, before - cpus) << "of each of the stacks, which are as many as cpus, one";
  for (int round = 0; round < 10; ++round) {
    begin_round();
    finish_round();
  }
  EXPECT_EQ(magazines(), 0U);
}

}  // namespace
}  // namespace terrace::heap
