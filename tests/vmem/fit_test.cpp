// SPDX-License-Identifier: MIT OR Apache-2.0
// The four policies, each on an arena with the same holes; exhaustion.
#include "arena_fixture.h"

#include <array>
#include <set>

namespace terrace::vmem {
namespace {

constexpr std::uintptr_t base = 1000;

// Free are [base + 100, +48), [base + 300, +20), [base + 500, +33), [base + 700, +20) and nothing else; in the lists in this
// order.
class FitTest : public testing::Test {
 protected:
  static constexpr std::array<Found, 4> holes{{{base + 100, 48}, {base + 300, 20}, {base + 500, 33}, {base + 700, 20}}};

  void SetUp() override {
    for (std::size_t i = 0; i < 1000; i += 4) ASSERT_EQ(a_.alloc(4, VM_FIRSTFIT), base + i);
    for (const Found& h : holes) free_all(h.start, h.start + round_up(h.size, 4));
    // The 33 bytes of the third: its last piece keeps three.
    void* const rest = vmem_xalloc(a_, 3, 0, 0, 0, at(base + 533), at(base + 536), VM_NOSLEEP);
    ASSERT_EQ(address_of(rest), base + 533);
    ASSERT_EQ(walked(a_, VMEM_FREE), std::vector<Found>(holes.begin(), holes.end()));
  }
  void TearDown() override {
    EXPECT_STREQ(a_.arena().check_invariants(), nullptr);
    for (const Found& f : walked(a_, VMEM_ALLOC)) a_.free(f.start, f.size);
    EXPECT_EQ(walked(a_, VMEM_FREE), (std::vector<Found>{{base, 1000}})) << "free neighbours are joined";
  }
  void free_all(std::uintptr_t from, std::uintptr_t to) {
    for (; from < to; from += 4) a_.free(from, 4);
  }
  const OwnArena a_{base, 1000, 1};
};

TEST_F(FitTest, best_takes_the_shortest) {
  const std::uintptr_t p = a_.alloc(18, VM_BESTFIT), q = a_.alloc(20, VM_BESTFIT);
  EXPECT_EQ((std::set<std::uintptr_t>{p, q}), (std::set<std::uintptr_t>{base + 300, base + 700}));
  EXPECT_EQ(a_.alloc(18, VM_BESTFIT), base + 500);
  EXPECT_EQ(a_.alloc(2, VM_BESTFIT), p + 18);
  EXPECT_EQ(a_.alloc(15, VM_BESTFIT), base + 518);
  EXPECT_EQ(a_.alloc(40, VM_BESTFIT), base + 100);
}

TEST_F(FitTest, first_takes_the_lowest) {
  EXPECT_EQ(a_.alloc(18, VM_FIRSTFIT), base + 100);
  EXPECT_EQ(a_.alloc(32, VM_FIRSTFIT), base + 500);
  EXPECT_EQ(a_.alloc(18, VM_FIRSTFIT), base + 118);
  EXPECT_EQ(a_.alloc(18, VM_FIRSTFIT), base + 300);
}

TEST_F(FitTest, next_goes_on_behind_the_last_and_then_from_the_start) {
  EXPECT_EQ(a_.alloc(10, VM_NEXTFIT), base + 100);
  EXPECT_EQ(a_.alloc(10, VM_NEXTFIT), base + 110);
  EXPECT_EQ(a_.alloc(33, VM_NEXTFIT), base + 500);
  EXPECT_EQ(a_.alloc(10, VM_NEXTFIT), base + 700);
  EXPECT_EQ(a_.alloc(11, VM_NEXTFIT), base + 120);
  EXPECT_EQ(a_.alloc(10, VM_NEXTFIT), base + 131);
}

TEST_F(FitTest, instant_takes_what_is_surely_long_enough_and_then_whatever_is) {
  const std::uintptr_t p = a_.alloc(20);  // of at least 32 bytes, though 20 would do
  EXPECT_TRUE(p == base + 100 || p == base + 500) << p;
  const std::uintptr_t q = a_.alloc(29);
  EXPECT_EQ(p == base + 100 ? base + 500 : base + 100, q);
  const std::uintptr_t r = a_.alloc(20), s = a_.alloc(20);
  EXPECT_EQ((std::set<std::uintptr_t>{r, s}).size(), 2U);
  EXPECT_NE(r * s, 0U);
}

TEST_F(FitTest, every_policy_finds_the_only_segment_that_will_do) {
  for (const int policy : {0, VM_BESTFIT, VM_FIRSTFIT, VM_NEXTFIT}) {
    const std::uintptr_t p = a_.alloc(48, policy);
    EXPECT_EQ(p, base + 100) << policy;
    a_.free(p, 48);
    EXPECT_EQ(a_.alloc(49, policy), 0U) << policy;
  }
}

TEST(NextFit, does_not_use_what_was_just_freed) {
  const OwnArena ids(1, 100, 1);
  for (std::uintptr_t id = 1; id <= 100; ++id) {
    ASSERT_EQ(ids.alloc(1, VM_NEXTFIT), id);
    ids.free(id, 1);  // joined with all the rest: the rotor must not go back with it
    ASSERT_STREQ(ids.arena().check_invariants(), nullptr);
  }
  EXPECT_EQ(ids.alloc(1, VM_NEXTFIT), 1U);
  ids.free(1, 1);
  EXPECT_EQ(walked(ids, VMEM_ROTOR), (std::vector<Found>{{2, 0}}));
}

TEST(NextFit, goes_on_where_other_policies_have_cut) {
  const OwnArena a(1, 100, 1);
  EXPECT_EQ(a.alloc(50, VM_NEXTFIT), 1U);
  a.free(1, 50);
  EXPECT_EQ(a.alloc(10, VM_FIRSTFIT), 1U);
  EXPECT_EQ(a.alloc(1, VM_NEXTFIT), 51U);
  EXPECT_EQ(address_of(vmem_xalloc(a, 5, 0, 0, 0, at(50), at(60), VM_NEXTFIT)), 52U);
  EXPECT_EQ(address_of(vmem_xalloc(a, 20, 0, 0, 0, nullptr, at(50), VM_NEXTFIT)), 11U);
  a.free(1, 10);
  a.free(51, 1);
  a.free(52, 5);
  a.free(11, 20);
}

TEST(NextFit, finds_room_before_the_rotor_in_its_own_segment) {
  const OwnArena a(1, 100, 1);
  EXPECT_EQ(a.alloc(60, VM_NEXTFIT), 1U);
  a.free(1, 60);
  EXPECT_EQ(a.alloc(50, VM_NEXTFIT), 1U) << "40 are left behind the rotor, 50 are to be had over it";
  a.free(1, 50);
}

TEST(Exhaustion, is_null_and_enomem_and_heals) {
  for (const int flags : {VM_SLEEP, VM_NOSLEEP, VM_NOSLEEP | VM_BESTFIT, VM_SLEEP | VM_NEXTFIT, VM_FIRSTFIT}) {
    const OwnArena a(1, 64, 1);
    std::vector<std::uintptr_t> pieces;
    while (const std::uintptr_t p = a.alloc(7, flags)) pieces.push_back(p);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(pieces.size(), 9U);
    EXPECT_EQ(a.arena().statistics().failures, 1U);
    EXPECT_NE(a.alloc(1, flags), 0U);
    a.free(walked(a, VMEM_ALLOC).back().start, 1);
    for (const std::uintptr_t p : pieces) a.free(p, 7);
    EXPECT_EQ(a.alloc(64, flags), 1U);
    a.free(1, 64);
  }
}

TEST(Sizes, nothing_is_null_and_too_much_is_enomem) {
  const OwnArena a(4096, 1 << 20, 4096);
  errno = 77;
  EXPECT_EQ(vmem_alloc(a, 0, VM_PANIC), nullptr);
  EXPECT_EQ(vmem_xalloc(a, 0, 0, 0, 0, nullptr, nullptr, VM_PANIC), nullptr);
  vmem_free(a, nullptr, 0);
  vmem_xfree(a, nullptr, 0);
  EXPECT_EQ(errno, 77);
  for (const std::size_t size : {(std::size_t{1} << 20) + 1, ~std::size_t{0} / 2, ~std::size_t{0} - 4095, ~std::size_t{0}}) {
    errno = 0;
    EXPECT_EQ(vmem_alloc(a, size, VM_NOSLEEP), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(vmem_xalloc(a, size, 8192, 4096, 0, nullptr, nullptr, VM_NOSLEEP), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
}

TEST(Sizes, many_pieces_grow_the_table) {
  const OwnArena a(1, 100000, 1);
  for (int round = 0; round < 2; ++round) {
    for (std::uintptr_t i = 1; i <= 100000; ++i) ASSERT_EQ(a.alloc(1, VM_NEXTFIT), i);
    EXPECT_EQ(a.alloc(1), 0U);
    for (std::uintptr_t i = 0; i < 100000; ++i) a.free(1 + i * 7919 % 100000, 1);
  }
}

}  // namespace
}  // namespace terrace::vmem
