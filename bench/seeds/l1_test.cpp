// SPDX-License-Identifier: MIT OR Apache-2.0
// The simulated cache on traces whose outcome is known.
#include "l1.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>

namespace {

constexpr std::uintptr_t page = l1::line * l1::sets;

// The nth line of a set.
std::uintptr_t at(std::uintptr_t n, std::uintptr_t set = 5) { return n * page + set * l1::line; }

template <class Replacement>
class Simulation : public ::testing::Test {};
using Policies = ::testing::Types<l1::Lru, l1::TreePlru>;
TYPED_TEST_SUITE(Simulation, Policies);

TYPED_TEST(Simulation, EightWrittenLinesOfASetFitAndTheNinthAborts) {
  l1::Cache<TypeParam> cache;
  cache.begin();
  for (std::uintptr_t n = 0; n < l1::ways; ++n) EXPECT_TRUE(cache.access(at(n), true)) << n;
  EXPECT_FALSE(cache.access(at(l1::ways), true));
}

TYPED_TEST(Simulation, ALoadDisplacesAStore) {
  l1::Cache<TypeParam> cache;
  cache.begin();
  EXPECT_TRUE(cache.access(at(0), true));
  for (std::uintptr_t n = 1; n < l1::ways; ++n) EXPECT_TRUE(cache.access(at(n), false));
  EXPECT_FALSE(cache.access(at(l1::ways), false));
}

TYPED_TEST(Simulation, AStoreMayDisplaceLoads) {
  l1::Cache<TypeParam> cache;
  cache.begin();
  for (std::uintptr_t n = 0; n < 100; ++n) EXPECT_TRUE(cache.access(at(n), false));
  EXPECT_TRUE(cache.access(at(100), true));
}

TYPED_TEST(Simulation, TheWholeCacheCanBeWritten) {
  l1::Cache<TypeParam> cache;
  cache.begin();
  for (std::uintptr_t address = 0; address < page * l1::ways; address += 8) ASSERT_TRUE(cache.access(address, true));
  EXPECT_FALSE(cache.access(page * l1::ways, true));
}

TYPED_TEST(Simulation, OtherSetsDoNotMatter) {
  l1::Cache<TypeParam> cache;
  cache.begin();
  EXPECT_TRUE(cache.access(at(0), true));
  for (std::uintptr_t n = 0; n < 1000; ++n) EXPECT_TRUE(cache.access(at(n, 6), false));
  EXPECT_TRUE(cache.holds(at(0)));
}

TYPED_TEST(Simulation, AnAbortDropsWhatWasWrittenAndACommitKeepsIt) {
  l1::Cache<TypeParam> cache;
  cache.begin();
  cache.access(at(0), true);
  cache.access(at(1), false);
  cache.abort();
  EXPECT_FALSE(cache.holds(at(0)));
  EXPECT_TRUE(cache.holds(at(1)));
  cache.begin();
  cache.access(at(0), true);
  cache.commit();
  EXPECT_TRUE(cache.holds(at(0)));
  for (std::uintptr_t n = 2; n < 100; ++n) EXPECT_TRUE(cache.access(at(n), false)) << "committed lines are like any other";
}

TYPED_TEST(Simulation, StoresOutsideOfATransactionAreNotTracked) {
  l1::Cache<TypeParam> cache;
  cache.access(at(0), true);
  cache.begin();
  for (std::uintptr_t n = 1; n <= 2 * l1::ways; ++n) EXPECT_TRUE(cache.access(at(n), false));
}

TYPED_TEST(Simulation, NeverMoreThanEightWaysAndTheLastLineIsAlwaysThere) {
  l1::Cache<TypeParam> cache;
  std::minstd_rand random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uintptr_t address = random() % (64 * page);
    if (i % 100 == 0) cache.begin();
    if (!cache.access(address, random() % 4 == 0)) cache.abort();
    ASSERT_LE(cache.present(address), l1::ways);
    if (i % 100 == 99) cache.commit();
  }
  for (std::uintptr_t n = 0; n < 1000; ++n) {
    cache.access(at(n), false);
    ASSERT_TRUE(cache.holds(at(n)));
    ASSERT_LE(cache.present(at(n)), l1::ways);
  }
  EXPECT_EQ(cache.present(at(0)), l1::ways);
}

// Loads 0 to 7 fill the ways, 0 is used again: it is the youngest, and LRU's victims are 1, 2, ... to 7 before 0's turn.
TEST(Replacement, LruEvictsInTheOrderOfUse) {
  l1::Cache<l1::Lru> cache;
  for (std::uintptr_t n = 0; n < l1::ways; ++n) cache.access(at(n), false);
  cache.access(at(0), false);
  for (std::uintptr_t n = 1; n < l1::ways; ++n) {
    cache.access(at(n + 100), false);
    EXPECT_FALSE(cache.holds(at(n)));
    EXPECT_TRUE(cache.holds(at(0)));
  }
  cache.access(at(200), false);
  EXPECT_FALSE(cache.holds(at(0)));
}

// After 0 to 7 all pointers are back at way 0. A use of way 0 points the root to the right half, whose pointers lead to way 4,
// while the oldest is way 1.
TEST(Replacement, TreePlruEvictsWhereItsPointersLead) {
  l1::Cache<l1::TreePlru> cache;
  for (std::uintptr_t n = 0; n < l1::ways; ++n) cache.access(at(n), false);
  cache.access(at(0), false);
  cache.access(at(100), false);
  EXPECT_FALSE(cache.holds(at(4)));
  EXPECT_TRUE(cache.holds(at(1)));
}

// Six lines to write, one of them again and again: it keeps the root pointing at the other half, whose four ways are all that
// the other five get. LRU keeps any eight.
TEST(Replacement, AHitCanMakeTreePlruEvictAWrittenLine) {
  const auto commits = [](auto cache) {
    for (std::uintptr_t n = 0; n < l1::ways; ++n) cache.access(at(n), false);
    cache.begin();
    bool kept = true;
    for (const std::uintptr_t n : {100, 4, 101, 4, 102, 4, 103, 4, 104}) kept = cache.access(at(n), true) && kept;
    return kept;
  };
  EXPECT_TRUE(commits(l1::Cache<l1::Lru>()));
  EXPECT_FALSE(commits(l1::Cache<l1::TreePlru>()));
}

}  // namespace
