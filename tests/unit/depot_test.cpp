// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/depot.h"

#include "level/budget.h"

#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>

namespace terrace::level {
namespace {

// The magazine that has n rounds. Nobody looks at them.
Magazine fake(unsigned n) {
  constexpr unsigned kind = magazine_kinds - 1;
  alignas(magazine_bytes(kind)) static std::byte memory[1 + magazine_capacity(kind)][magazine_bytes(kind)];
  Magazine m = Magazine::make(memory[n], kind);
  m.set_limit(n);
  m.add(n);
  return m;
}

// Of a thread whose magazines go there.
Locality here(Place place) { return {.slot = place.shard, .cpu = {}, .processor = place.depot, .node = 0}; }

// Zeroed memory for shards.
class Storage {
 public:
  explicit Storage(std::size_t shards)
      : bytes_(shards * Shard::bytes(depot_keys)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(alignof(Shard), bytes_))) {
    std::memset(memory_, 0, bytes_);
  }
  ~Storage() { std::free(memory_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  std::byte* get() const { return memory_; }

 private:
  std::size_t bytes_;
  std::byte* memory_;
};

class DepotsTest : public testing::Test {
 protected:
  void SetUp() override { depots_.open({.count = 3, .shards = 2}, storage_.get(), marks_); }
  // The magazine, and whether it is another processor's.
  Magazine take(Place own, std::size_t key, bool& foreign) {
    const Taken t = depots_.take(here(own), key);
    foreign = t.foreign;
    return t.magazine;
  }
  Storage storage_{6};
  std::uint16_t marks_[depot_keys * 3] = {};
  Depots depots_;
};

TEST_F(DepotsTest, gives_back_the_newest_magazine_first) {
  EXPECT_TRUE(depots_.put(here({0, 0}), 7, fake(1)));
  EXPECT_TRUE(depots_.put(here({0, 0}), 7, fake(2)));
  bool foreign = true;
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(2));
  EXPECT_FALSE(foreign);
  const StackCounters& counters = depots_.at(Place{0, 0}).counters(7);
  EXPECT_EQ(counters.blocks_in.read(), 3U);
  EXPECT_EQ(counters.blocks_out.read(), 2U);
  EXPECT_EQ(counters.magazines_in.read(), 2U);
  EXPECT_EQ(counters.magazines_out.read(), 1U);
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(1));
  EXPECT_EQ(take({0, 0}, 7, foreign), Magazine{});
}

TEST_F(DepotsTest, asks_the_other_processors_starting_at_its_own) {
  EXPECT_TRUE(depots_.put(here({0, 0}), 7, fake(1)));
  EXPECT_TRUE(depots_.put(here({2, 0}), 7, fake(2)));
  bool foreign = false;
  EXPECT_EQ(take({1, 0}, 7, foreign), fake(2)) << "processor 2 comes after 1";
  EXPECT_TRUE(foreign);
  EXPECT_EQ(take({1, 0}, 7, foreign), fake(1));
  EXPECT_TRUE(foreign);
}

TEST_F(DepotsTest, prefers_the_own_shard_and_takes_the_oldest_of_others) {
  EXPECT_TRUE(depots_.put(here({0, 0}), 7, fake(1)));
  EXPECT_TRUE(depots_.put(here({0, 1}), 7, fake(2)));
  EXPECT_TRUE(depots_.put(here({0, 0}), 7, fake(3)));
  EXPECT_TRUE(depots_.put(here({0, 1}), 7, fake(4)));
  EXPECT_TRUE(depots_.put(here({2, 0}), 7, fake(5)));
  bool foreign = true;
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(3));
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(1));
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(2)) << "the oldest of the other shard";
  EXPECT_FALSE(foreign);
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(4)) << "before another processor's";
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(5));
  EXPECT_TRUE(foreign);
  EXPECT_EQ(take({0, 0}, 7, foreign), Magazine{});
}

TEST_F(DepotsTest, is_bounded_and_a_refused_magazine_stays_the_callers) {
  for (unsigned i = 0; i < magazines_per_stack; ++i) EXPECT_TRUE(depots_.put(here({0, 0}), 1, fake(i + 1)));
  EXPECT_FALSE(depots_.put(here({0, 0}), 1, fake(99)));
  EXPECT_EQ(depots_.at(Place{0, 0}).pop_oldest(1), fake(1));
  EXPECT_TRUE(depots_.put(here({0, 0}), 1, fake(99)));
}

// Sixteen last-level caches with sixteen shards each.
class LargeMachineTest : public testing::Test {
 protected:
  static constexpr unsigned processors = 16;
  void SetUp() override { depots_.open({.count = processors, .shards = most_shards}, storage_.get(), marks_.get()); }
  Storage storage_{processors * most_shards};
  std::unique_ptr<std::uint16_t[]> marks_ = std::make_unique<std::uint16_t[]>(processors * depot_keys);
  Depots depots_;
};

TEST_F(LargeMachineTest, a_miss_asks_no_shard_but_its_own) {
  const Taken t = depots_.take(here({3, 5}), 9);
  EXPECT_EQ(t.magazine, Magazine{});
  EXPECT_EQ(t.asked, 1U);
}

TEST_F(LargeMachineTest, only_shards_that_held_something_are_asked_and_each_in_vain_once) {
  for (unsigned p = 0; p < processors; ++p) EXPECT_TRUE(depots_.put(here({p, 7}), 9, fake(p + 1)));
  for (unsigned p = 0; p < processors; ++p) EXPECT_TRUE(depots_.at(Place{p, 7}).pop_newest(9));
  EXPECT_TRUE(depots_.put(here({2, 15}), 9, fake(99)));
  const Taken found = depots_.take(here({3, 5}), 9);
  EXPECT_EQ(found.magazine, fake(99));
  EXPECT_LE(found.asked, 1 + processors + 1);
  const Taken miss = depots_.take(here({3, 5}), 9);
  EXPECT_EQ(miss.magazine, Magazine{});
  EXPECT_LE(miss.asked, 2U) << "the own shard, and the one that the last magazine came from";
  EXPECT_EQ(depots_.take(here({3, 5}), 9).asked, 1U);
}

TEST_F(LargeMachineTest, whatever_is_in_some_shard_is_found_from_any) {
  for (unsigned n = 0; n < processors * most_shards; ++n) {
    const Place to{n / most_shards, n % most_shards};
    const Place from{n * 7 % processors, n * 5 % most_shards};
    EXPECT_TRUE(depots_.put(here(to), 9, fake(1)));
    EXPECT_EQ(depots_.take(here(from), 9).magazine, fake(1)) << n;
    EXPECT_EQ(depots_.take(here(to), 9).magazine, Magazine{}) << n;
  }
}

TEST_F(DepotsTest, of_groups_only_the_own_one_is_asked) {
  constexpr std::uint8_t groups[] = {0, 1, 0};
  depots_.open({.count = 3, .shards = 2, .group = groups}, storage_.get(), marks_);
  bool foreign = false;
  EXPECT_TRUE(depots_.put(here({1, 0}), 7, fake(1)));
  EXPECT_TRUE(depots_.put(here({2, 0}), 7, fake(2)));
  EXPECT_EQ(take({0, 0}, 7, foreign), fake(2)) << "1 is nearer, but of another group";
  EXPECT_TRUE(foreign);
  EXPECT_EQ(take({0, 0}, 7, foreign), Magazine{});
  EXPECT_EQ(take({1, 1}, 7, foreign), fake(1));
  EXPECT_FALSE(foreign);
}

TEST(Budget, grants_up_to_its_limit) {
  Budget b;
  b.set_limit(100);
  EXPECT_TRUE(b.reserve(60));
  EXPECT_FALSE(b.reserve(41));
  EXPECT_TRUE(b.reserve(40));
  b.release(60);
  EXPECT_EQ(b.granted(), 40U);
  b.force_reserve(100);
  EXPECT_EQ(b.granted(), 140U);
  EXPECT_FALSE(b.reserve(1));
}

TEST(Budget, rises_in_a_burst_and_fades_after_it) {
  Budget b;
  b.set_limit(800, 250);
  for (std::uint64_t i = 1; i < Budget::refusals_between_looks; ++i) EXPECT_FALSE(b.refused());
  EXPECT_TRUE(b.refused());
  b.look_for_burst(1000);
  EXPECT_EQ(b.limit(), 800U) << "nothing is known of how long it took";
  b.look_for_burst(1000 + Budget::burst_ms + 1);
  EXPECT_EQ(b.limit(), 800U) << "not that fast";
  b.look_for_burst(1000 + 2 * Budget::burst_ms);
  EXPECT_EQ(b.limit(), 900U);
  b.look_for_burst(1000 + 2 * Budget::burst_ms);
  b.look_for_burst(1000 + 2 * Budget::burst_ms);
  EXPECT_EQ(b.limit(), 1050U) << "no more than was allowed";
  EXPECT_FALSE(b.refused(Budget::refusals_between_looks - 1));
  EXPECT_TRUE(b.refused(3)) << "whoever passes the mark";
  for (int i = 0; i < 100; ++i) b.fade();
  EXPECT_EQ(b.limit(), 800U);
}

}  // namespace
}  // namespace terrace::level
