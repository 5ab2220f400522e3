// SPDX-License-Identifier: MIT OR Apache-2.0
#include "spans_fixture.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <vector>

namespace terrace::span {
namespace {

TEST_F(SpansTest, fresh_spans_are_zero_and_writable) {
  const auto s = spans_->take(3, State::taken);
  ASSERT_NE(s.first, no_granule);
  EXPECT_TRUE(s.clean && s.untouched);
  EXPECT_EQ(memory(s.first)[3 * granule_size - 1], std::byte{0});
  std::memset(memory(s.first), 1, 3 * granule_size);
}

TEST_F(SpansTest, a_given_span_is_taken_again_dirty) {
  const auto a = spans_->take(2, State::taken);
  spans_->give(a.first);
  const auto b = spans_->take(2, State::taken);
  EXPECT_EQ(b.first, a.first);
  EXPECT_FALSE(b.clean || b.untouched);
}

TEST_F(SpansTest, neighbours_merge) {
  const auto a = spans_->take(2, State::taken);
  const auto b = spans_->take(2, State::taken);
  const auto c = spans_->take(2, State::taken);
  const auto guard = spans_->take(1, State::taken);
  (void)guard;
  ASSERT_EQ(b.first, a.first + 2);
  ASSERT_EQ(c.first, b.first + 2);
  spans_->give(a.first);
  spans_->give(c.first);
  spans_->give(b.first);
  EXPECT_EQ(spans_->take(6, State::taken).first, a.first);
}

TEST_F(SpansTest, extends_into_what_is_free_behind_and_no_further) {
  const auto a = spans_->take(2, State::taken);
  const auto b = spans_->take(2, State::taken);
  EXPECT_FALSE(spans_->extend(a.first, 3));
  spans_->give(b.first);
  EXPECT_TRUE(spans_->extend(a.first, 3));
  std::memset(memory(a.first), 1, 3 * granule_size);
  spans_->shorten(a.first, 1);
  EXPECT_EQ(spans_->take(2, State::taken).first, a.first + 1);
}

TEST_F(SpansTest, shortened_by_pages_it_gives_them_back_at_once) {
  const auto a = spans_->take(6, State::taken);
  std::memset(memory(a.first), 1, 6 * granule_size);
  spans_->shorten(a.first, 2, memory(a.first) + granule_size + granule_size / 2);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
  EXPECT_EQ(spans_->counters().purged_bytes.read(), 4 * granule_size + granule_size / 2);
  EXPECT_EQ(memory(a.first)[granule_size + granule_size / 2 - 1], std::byte{1});
  EXPECT_EQ(memory(a.first)[granule_size + granule_size / 2], std::byte{0});
  const auto b = spans_->take(4, State::taken);
  EXPECT_EQ(b.first, a.first + 2);
  EXPECT_TRUE(b.clean);
}

TEST_F(SpansTest, a_span_that_is_shortened_and_lengthened_in_turn_keeps_its_pages) {
  const auto a = spans_->take(6, State::taken);
  for (int turn = 0; turn < 3; ++turn) {
    std::memset(memory(a.first), 1, 6 * granule_size);
    spans_->shorten(a.first, 2, memory(a.first) + 2 * granule_size);
    EXPECT_EQ(spans_->dirty_bytes(), turn == 0 ? 0 : 4 * granule_size) << turn;
    ASSERT_TRUE(spans_->extend(a.first, 6));
  }
}

TEST_F(SpansTest, purged_memory_is_zero_again_and_counted) {
  const auto a = spans_->take(4, State::taken);
  std::memset(memory(a.first), 1, 4 * granule_size);
  spans_->give(a.first);
  EXPECT_EQ(spans_->dirty_bytes(), 4 * granule_size);
  EXPECT_EQ(spans_->purge_all(), 4 * granule_size);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
  const auto b = spans_->take(4, State::taken);
  EXPECT_TRUE(b.clean);
  EXPECT_FALSE(b.untouched);  // a program may write to it while it is free
  EXPECT_EQ(memory(b.first)[17], std::byte{0});
}

TEST_F(SpansTest, decay_purges_what_has_been_free_for_long_enough) {
  spans_->set_decay(1000);
  const auto a = spans_->take(4, State::taken);
  spans_->give(a.first);
  const std::uint64_t when = spans_->window().record(a.first).free.when;
  spans_->decay(when + 999);
  EXPECT_NE(spans_->dirty_bytes(), 0U);
  spans_->decay(when + 1000);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
}

TEST_F(SpansTest, a_loop_that_frees_all_each_time_gives_nothing_back_or_much_once) {
  const auto turn = [this](std::uint32_t granules) {
    GranuleIndex held[32];
    for (GranuleIndex& h : held) {
      h = spans_->take(granules, State::taken).first;
      memory(h)[0] = std::byte{1};
    }
    for (const GranuleIndex h : held) spans_->give(h);
    return spans_->counters().purged_bytes.read();
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(turn(16), 0U) << "32 MiB that were in use lately";
  const std::uint64_t once = turn(64);
  EXPECT_NE(once, 0U) << "of 128 MiB a part has to go, and nothing is known yet";
  const std::uint64_t before = turn(64);
  EXPECT_LE(before, 2 * once);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(turn(64), before);
}

// What lies before it stays free, in its state and at its age, whether the span that was found is clean or dirty.
TEST_F(SpansTest, an_aligned_span_takes_no_more_than_it_has) {
  constexpr std::size_t align = 16 * granule_size;
  spans_->take(1, State::taken);  // so that the rest of the window begins at no such multiple
  for (const bool dirty : {false, true}) {
    if (dirty) spans_->give(spans_->take(40, State::taken).first);
    const std::uint64_t before = spans_->taken_bytes(), dirty_before = spans_->dirty_bytes();
    const auto s = spans_->take(2, State::taken, Cut::whole, 0, align);
    ASSERT_NE(s.first, no_granule);
    EXPECT_EQ(address_of(memory(s.first)) % align, 0U);
    EXPECT_EQ(s.clean, !dirty);
    EXPECT_EQ(spans_->taken_bytes(), before + 2 * granule_size);
    EXPECT_EQ(spans_->dirty_bytes(), dirty ? dirty_before - 2 * granule_size : 0);
    EXPECT_EQ(spans_->check_invariants(), nullptr);
    spans_->give(s.first);
    EXPECT_EQ(spans_->check_invariants(), nullptr);
  }
}

TEST_F(SpansTest, an_aligned_span_serves_again_between_others) {
  constexpr std::size_t align = 16 * granule_size;
  GranuleIndex held[8];
  for (GranuleIndex& h : held) h = spans_->take(2, State::taken, Cut::whole, 0, align).first;
  for (const GranuleIndex h : held) spans_->give(h);
  for (std::size_t i = 0; i < std::size(held); ++i)
    EXPECT_FALSE(spans_->take(2, State::taken, Cut::whole, 0, align).clean) << i;
}

TEST_F(SpansTest, an_impossible_request_fails_and_harms_nothing) {
  EXPECT_EQ(spans_->take(max_granules, State::taken).first, no_granule);
  EXPECT_NE(spans_->take(1, State::taken).first, no_granule);
}

TEST(bins, spans_of_a_higher_bin_are_always_long_enough) {
  for (std::uint32_t n = 1; n < 5000; ++n) {
    EXPECT_LE(Bins::bin_of(n), Bins::bin_of(n + 1)) << n;
    if (n > Bins::exact) {
      EXPECT_GT(Bins::bin_of(n + n / 16 + 1), Bins::bin_of(n)) << n;  // so little longer, and it is found
    } else {
      EXPECT_EQ(Bins::bin_of(n), n - 1);
    }
  }
}

// Spans of the own bin may be too short. One that is long enough is found behind few of them, and behind more is left alone for
// a longer one: however many are free, the same number is looked at.
TEST_F(SpansTest, finding_a_span_does_not_look_at_all_that_are_free) {
  static_assert(Bins::bin_of(64) == Bins::bin_of(67));
  const auto taken = [this](std::uint32_t granules) {
    const GranuleIndex first = spans_->take(granules, State::taken).first;
    EXPECT_NE(spans_->take(1, State::taken).first, no_granule);  // keeps neighbours from merging
    return first;
  };
  std::vector<GranuleIndex> all = {taken(40000), taken(67)};
  const GranuleIndex fits = all.back();
  for (unsigned n = 0; n < Bins::few_candidates; ++n) all.push_back(taken(64));
  for (const GranuleIndex i : all) {  // the last one is looked at first
    spans_->give(i);
    spans_->purge_all();
  }
  const GranuleIndex longer = spans_->take(66, State::taken).first;
  EXPECT_NE(longer, no_granule);
  EXPECT_NE(longer, fits);
  EXPECT_EQ(spans_->take(64, State::taken).first, all.back());
  EXPECT_EQ(spans_->take(66, State::taken).first, fits);
}

TEST_F(SpansTest, what_is_left_of_a_dirty_span_keeps_its_age) {
  const GranuleIndex old = spans_->take(3, State::taken).first;
  ASSERT_NE(spans_->take(1, State::taken).first, no_granule);
  const GranuleIndex young = spans_->take(1, State::taken).first;
  ASSERT_NE(spans_->take(1, State::taken).first, no_granule);
  spans_->set_decay(1000);
  spans_->give(old, 5000);
  spans_->give(young, 5900);
  ASSERT_EQ(spans_->dirty_bytes(), 4 * granule_size);  // the floor: nothing was purged yet
  ASSERT_EQ(spans_->take(2, State::taken).first, old);
  spans_->decay(6100);
  EXPECT_EQ(spans_->dirty_bytes(), granule_size);
}

}  // namespace
}  // namespace terrace::span
