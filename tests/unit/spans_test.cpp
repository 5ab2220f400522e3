// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/spans.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace terrace::span {
namespace {

class SpansTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(spans_->open()); }
  std::byte* memory(GranuleIndex i) { return spans_->window().address(i); }
  // Not on the stack, and never destroyed: a window is for the life of a process.
  Spans* spans_ = kept().emplace_back(new Spans);
  static std::vector<Spans*>& kept() {
    static auto* const all = new std::vector<Spans*>;
    return *all;
  }
};

TEST_F(SpansTest, fresh_spans_are_zero_and_writable) {
  const auto s = spans_->take(3, State::large);
  ASSERT_NE(s.first, no_granule);
  EXPECT_TRUE(s.zero);
  EXPECT_EQ(memory(s.first)[3 * granule_size - 1], std::byte{0});
  std::memset(memory(s.first), 1, 3 * granule_size);
}

TEST_F(SpansTest, a_given_span_is_taken_again_dirty) {
  const auto a = spans_->take(2, State::large);
  spans_->give(a.first);
  const auto b = spans_->take(2, State::large);
  EXPECT_EQ(b.first, a.first);
  EXPECT_FALSE(b.zero);
}

TEST_F(SpansTest, neighbours_merge) {
  const auto a = spans_->take(2, State::large);
  const auto b = spans_->take(2, State::large);
  const auto c = spans_->take(2, State::large);
  const auto guard = spans_->take(1, State::large);
  (void)guard;
  ASSERT_EQ(b.first, a.first + 2);
  ASSERT_EQ(c.first, b.first + 2);
  spans_->give(a.first);
  spans_->give(c.first);
  spans_->give(b.first);
  EXPECT_EQ(spans_->take(6, State::large).first, a.first);
}

TEST_F(SpansTest, extends_into_what_is_free_behind_and_no_further) {
  const auto a = spans_->take(2, State::large);
  const auto b = spans_->take(2, State::large);
  EXPECT_FALSE(spans_->extend(a.first, 3));
  spans_->give(b.first);
  EXPECT_TRUE(spans_->extend(a.first, 3));
  std::memset(memory(a.first), 1, 3 * granule_size);
  spans_->shorten(a.first, 1);
  EXPECT_EQ(spans_->take(2, State::large).first, a.first + 1);
}

TEST_F(SpansTest, purged_memory_is_zero_again_and_counted) {
  const auto a = spans_->take(4, State::large);
  std::memset(memory(a.first), 1, 4 * granule_size);
  spans_->give(a.first);
  EXPECT_EQ(spans_->dirty_bytes(), 4 * granule_size);
  EXPECT_EQ(spans_->purge_all(), 4 * granule_size);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
  const auto b = spans_->take(4, State::large);
  EXPECT_TRUE(b.zero);
  EXPECT_EQ(memory(b.first)[17], std::byte{0});
}

TEST_F(SpansTest, decay_purges_what_has_been_free_for_long_enough) {
  spans_->set_decay(1000);
  const auto a = spans_->take(4, State::large);
  spans_->give(a.first);
  const std::uint64_t when = spans_->window().record(a.first).when;
  spans_->decay(when + 999);
  EXPECT_NE(spans_->dirty_bytes(), 0U);
  spans_->decay(when + 1000);
  EXPECT_EQ(spans_->dirty_bytes(), 0U);
}

TEST_F(SpansTest, a_loop_that_frees_all_each_time_gives_it_back_once) {
  const auto turn = [this] {
    GranuleIndex held[32];
    for (GranuleIndex& h : held) {
      h = spans_->take(2, State::large).first;
      memory(h)[0] = std::byte{1};
    }
    for (const GranuleIndex h : held) spans_->give(h);
  };
  turn();
  const std::uint64_t once = spans_->counters().purged_bytes.read();
  EXPECT_NE(once, 0U);  // above the floor, and nothing is known yet
  turn();
  EXPECT_LE(spans_->counters().purged_bytes.read(), 2 * once);
  const std::uint64_t before = spans_->counters().purged_bytes.read();
  for (int i = 0; i < 10; ++i) turn();
  EXPECT_EQ(spans_->counters().purged_bytes.read(), before);
}

TEST_F(SpansTest, an_impossible_request_fails_and_harms_nothing) {
  EXPECT_EQ(spans_->take(max_granules, State::large).first, no_granule);
  EXPECT_NE(spans_->take(1, State::large).first, no_granule);
}

// A random walk against a reference: spans never overlap, and all of it comes back.
TEST_F(SpansTest, random_walk_never_hands_a_granule_out_twice) {
  std::mt19937 rng(7);
  std::vector<bool> owned(1 << 16);
  struct Held {
    GranuleIndex first;
    std::uint32_t granules;
  };
  std::vector<Held> held;
  const auto mark = [&](const Held& h, bool value) {
    for (std::uint32_t g = 0; g < h.granules; ++g) {
      ASSERT_NE(owned.at(h.first + g), value);
      owned[h.first + g] = value;
    }
  };
  for (int i = 0; i < 20000; ++i) {
    if (held.size() < 50 && rng() % 2 == 0) {
      const std::uint32_t n = rng() % 8 == 0 ? 1 + rng() % 100 : 1 + rng() % 5;
      const Held h{spans_->take(n, State::large).first, n};
      ASSERT_NE(h.first, no_granule);
      mark(h, true);
      held.push_back(h);
    } else if (!held.empty()) {
      const std::size_t k = rng() % held.size();
      if (rng() % 4 == 0 && held[k].granules > 1) {
        const std::uint32_t less = 1 + rng() % (held[k].granules - 1);
        mark({held[k].first + less, held[k].granules - less}, false);
        spans_->shorten(held[k].first, less);
        held[k].granules = less;
      } else {
        mark(held[k], false);
        spans_->give(held[k].first);
        held[k] = held.back();
        held.pop_back();
      }
    }
    if (i % 1000 == 0) spans_->purge_all();
  }
  for (const Held& h : held) spans_->give(h.first);
  EXPECT_EQ(spans_->taken_bytes(), 0U);
}

}  // namespace
}  // namespace terrace::span
