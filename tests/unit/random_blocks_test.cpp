// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/slabs/random_blocks.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace terrace::heap {
namespace {

TEST(RandomBlocks, each_free_block_comes_once_and_all_come) {
  Random random;
  random.seed(1);
  for (const std::uint32_t bits : {1U, 63U, 64U, 65U, 200U, 4096U}) {
    std::uint64_t map[64] = {};
    for (std::uint32_t i = 0; i < bits; ++i) map[i / 64] |= std::uint64_t{1} << i % 64;
    std::vector<int> seen(bits);
    for (unsigned total = 0; total < bits;) {
      std::uint64_t numbers[254];
      const unsigned n = take_random(map, bits, 200, numbers, random);
      ASSERT_EQ(n, std::min(200U, bits - total));
      for (unsigned i = 0; i < n; ++i) {
        ASSERT_LT(numbers[i], bits);
        ++seen[numbers[i]];
      }
      total += n;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), bits);
    EXPECT_EQ(std::count(std::begin(map), std::end(map), 0U), 64);
  }
}

TEST(RandomBlocks, every_block_is_the_first_now_and_then) {
  Random random;
  random.seed(2);
  std::vector<int> first(100);
  for (int round = 0; round < 10000; ++round) {
    std::uint64_t map[64] = {~std::uint64_t{0}, (std::uint64_t{1} << 36) - 1};
    std::uint64_t numbers[8];
    ASSERT_EQ(take_random(map, 100, 8, numbers, random), 8U);
    ++first[numbers[0]];
  }
  EXPECT_GT(*std::min_element(first.begin(), first.end()), 20);
  EXPECT_LT(*std::max_element(first.begin(), first.end()), 500);
}

}  // namespace
}  // namespace terrace::heap
