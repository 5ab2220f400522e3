// SPDX-License-Identifier: MIT OR Apache-2.0
// Properties of the sizing policies, over random inputs.
#include "lab/sizing.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace terrace::lab {
namespace {

constexpr int rounds = 20000;

struct Random {
  std::mt19937_64 bits{12345};
  /// Below `limit`, small ones as often as large ones.
  std::uint64_t below(std::uint64_t limit) {
    const std::uint64_t any = bits() >> bits() % 64;
    return any % limit;
  }
};

Bounds any_bounds(Random& random) {
  const std::size_t alignment = std::size_t{8} << random.below(10);
  const std::size_t least = alignment * (1 + random.below(1000));
  return {.least = least, .most = least + alignment * random.below(1 << 20), .alignment = alignment};
}

std::size_t any_size(Random& random, const Bounds& b) {
  return b.least + round_down(random.below(b.most - b.least + 1), b.alignment);
}

Share any_share(Random& random) {
  Share share;
  for (std::uint64_t n = random.below(5); n != 0; --n) {
    const std::uint64_t all = 1 + random.below(std::uint64_t{1} << 40);
    share.sample(random.below(all + 1), all);
  }
  return share;
}

void expect_within(std::size_t size, const Bounds& b) {
  ASSERT_GE(size, b.least);
  ASSERT_LE(size, b.most);
  ASSERT_EQ(size % b.alignment, 0U);
}

TEST(Sizing, results_are_within_bounds_and_aligned) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    const Bounds b = any_bounds(random);
    const std::size_t size = any_size(random, b);
    const std::size_t young = random.below(std::size_t{1} << 40);
    const auto buffers = static_cast<unsigned>(random.below(5000));
    expect_within(b.clamp(random.below(std::size_t{1} << 50)), b);
    expect_within(doubled(size, young, buffers, b), b);
    expect_within(decayed(size, b), b);
    expect_within(grown(any_share(random), young, buffers, static_cast<int>(random.below(TERRACE_LAB_LEVELS)), b), b);
  }
}

TEST(Sizing, doubling_stays_below_twice_the_size_and_the_fair_share) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    const Bounds b = any_bounds(random);
    const std::size_t size = any_size(random, b);
    const std::size_t young = random.below(std::size_t{1} << 40);
    const auto buffers = static_cast<unsigned>(1 + random.below(5000));
    const std::size_t next = doubled(size, young, buffers, b);
    ASSERT_LE(next, std::max(2 * size, b.least));
    ASSERT_LE(next, std::max(young / buffers / doubling_share, b.least));
  }
}

TEST(Sizing, doubling_doubles_while_it_may) {
  constexpr Bounds b{.least = 64, .most = 1 << 20, .alignment = 16};
  static_assert(doubled(4096, 1 << 30, 4, b) == 8192);
  static_assert(doubled(1 << 20, 1 << 30, 4, b) == 1 << 20);
  static_assert(doubled(4096, 64 << 10, 4, b) == 4096);
  static_assert(doubled(4096, 0, 0, b) == 64);
}

TEST(Sizing, decay_is_monotone_and_never_grows) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    const Bounds b = any_bounds(random);
    const std::size_t x = any_size(random, b), y = any_size(random, b);
    ASSERT_LE(decayed(x, b), x);
    ASSERT_LE(decayed(std::min(x, y), b), decayed(std::max(x, y), b));
  }
}

TEST(Sizing, decay_ends_at_the_least) {
  constexpr Bounds b{.least = 48, .most = 1 << 20, .alignment = 16};
  std::size_t size = b.most;
  for (int i = 0; i < 20; ++i) size = decayed(size, b);
  EXPECT_EQ(size, b.least);
}

// In units of 1/65536.
std::uint64_t value(const Share& share) { return share.of(std::uint64_t{1} << 16); }

TEST(Share, is_between_its_samples) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    Share share;
    std::uint64_t least = ~std::uint64_t{0}, most = 0;
    for (int n = 0; n < 8; ++n) {
      const std::uint64_t now = random.below(65537);
      share.sample(now, 65536);
      least = std::min(least, now);
      most = std::max(most, now);
      ASSERT_GE(value(share), least);
      ASSERT_LE(value(share), most);
    }
  }
}

TEST(Share, converges_to_what_stays_the_same) {
  Random random;
  for (int i = 0; i < rounds / 10; ++i) {
    Share share = any_share(random);
    const std::uint64_t steady = random.below(65537);
    for (int n = 0; n < 40; ++n) share.sample(steady, 65536);
    ASSERT_LE(value(share), steady);
    ASSERT_LE(steady - value(share), 2U) << "rounded down at each step";
  }
}

TEST(Share, is_its_first_sample_and_unknown_before) {
  Share share;
  EXPECT_FALSE(share.known());
  share.sample(5, 0);
  EXPECT_FALSE(share.known()) << "nothing was allocated";
  share.sample(1, 4);
  EXPECT_TRUE(share.known());
  EXPECT_EQ(value(share), 16384U);
}

TEST(Share, is_never_more_than_all) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    Share share;
    share.sample(random.below(std::uint64_t{1} << 40), 1 + random.below(std::uint64_t{1} << 30));
    const std::uint64_t bytes = random.below(std::uint64_t{1} << 46);
    ASSERT_LE(share.of(bytes), bytes);
  }
}

TEST(Sizing, growing_gives_the_target_number_of_refills) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    const Bounds b{.least = 16, .most = std::size_t{1} << 40, .alignment = 16};
    const std::size_t young = (std::size_t{1} << 20) + random.below(std::size_t{1} << 36);
    const int level = static_cast<int>(random.below(TERRACE_LAB_LEVELS));
    const Share share = any_share(random);
    const auto buffers = static_cast<unsigned>(1 + random.below(64));
    const std::uint64_t through = share.known() ? share.of(young) : young / buffers;
    if (through < 64 * 1024) continue;
    const std::uint64_t refills = through / grown(share, young, buffers, level, b);
    ASSERT_GE(refills, target_refills[level]);
    ASSERT_LE(refills, target_refills[level] + target_refills[level] / 10 + 1);
  }
}

TEST(Flip, happens_above_the_threshold_only) {
  Random random;
  for (int i = 0; i < rounds; ++i) {
    const std::size_t largest = random.below(std::size_t{1} << 30);
    const auto cores = static_cast<unsigned>(1 + random.below(4096)), threads = static_cast<unsigned>(1 + random.below(100000));
    for (const bool by_core : {false, true}) {
      const std::uint64_t threshold = std::uint64_t{largest} * (by_core ? threads : cores);
      ASSERT_FALSE(should_flip(by_core, threshold, largest, cores, threads));
      ASSERT_TRUE(should_flip(by_core, threshold + 1, largest, cores, threads));
    }
  }
}

constexpr std::uint64_t space = 1 << 20, much = space / Trials::much;

// How many collections in turn find objects by core, after one by thread that found so much unused.
unsigned spell(Trials& trials, std::uint64_t unused) {
  if (!trials.by_core_next(false, unused, space)) return 0;
  unsigned collections = 1;
  while (trials.by_core_next(true, 0, space)) ++collections;
  return collections;
}

TEST(Auto, goes_by_core_when_more_than_a_part_of_the_space_is_unused) {
  Trials trials;
  EXPECT_EQ(spell(trials, 0), 0U);
  EXPECT_EQ(spell(trials, much), 0U);
  EXPECT_EQ(spell(trials, much + 1), 1U);
}

TEST(Auto, tries_tlabs_less_and_less_often_while_they_waste) {
  Trials trials;
  for (unsigned expected = 1; expected <= Trials::longest; expected *= 2) EXPECT_EQ(spell(trials, much + 1), expected);
  EXPECT_EQ(spell(trials, space), Trials::longest);
  EXPECT_EQ(spell(trials, much), 0U) << "they waste less now";
  EXPECT_EQ(spell(trials, much + 1), 1U);
}

}  // namespace
}  // namespace terrace::lab
