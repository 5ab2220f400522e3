// SPDX-License-Identifier: MIT OR Apache-2.0
// Sectors of every class, placement and colour, compared with what a look at each block says.
#include "heap/slabs/sectors.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace terrace::heap {
namespace {

// First and last byte of block i in the slab.
struct Bytes {
  std::uint32_t first, last;
};
Bytes bytes_of(const Shape& s, std::uint32_t start, std::uint32_t i) {
  const std::uint32_t first = start + s.offset_of(i);
  return {first, first + s.stride - 1};
}

Sectors::Mask bit(std::uint32_t sector) { return Sectors::Mask{1} << sector; }

void check_cover(const Sectors& sectors, const Shape& s) {
  ASSERT_GE(sectors.count(), 1U);
  ASSERT_LE(sectors.count(), 64U);
  ASSERT_EQ(sectors.offset(0), 0U);
  ASSERT_EQ(sectors.offset(sectors.count()), s.granules * span::granule_size);
  for (std::uint32_t n = 0; n < sectors.count(); ++n) {
    ASSERT_LT(sectors.offset(n), sectors.offset(n + 1));
    ASSERT_EQ(sectors.offset(n) % os::page_size(), 0U) << "whole pages";
    ASSERT_EQ(sectors.between(n, n + 1), bit(n));
  }
  ASSERT_EQ(sectors.all(), sectors.between(0, sectors.count()));
}

void check_blocks(const Sectors& sectors, const Shape& s, std::uint32_t start) {
  std::vector<BlockRange> expected(sectors.count(), {s.blocks, 0});
  for (std::uint32_t i = 0; i < s.blocks; ++i) {
    const Bytes b = bytes_of(s, start, i);
    Sectors::Mask touched = 0;
    for (std::uint32_t n = 0; n < sectors.count(); ++n) {
      if (b.last < sectors.offset(n) || b.first >= sectors.offset(n + 1)) continue;
      touched |= bit(n);
      expected[n] = {min_of(expected[n].first, i), max_of(expected[n].end, i + 1)};
    }
    ASSERT_EQ(sectors.touched_by({i, i + 1}), touched) << "block " << i;
  }
  for (std::uint32_t n = 0; n < sectors.count(); ++n) {
    const BlockRange found = sectors.blocks_in(n, n + 1);
    if (expected[n].end == 0) {
      ASSERT_GE(found.first, found.end) << "sector " << n << " has no block";
    } else {
      ASSERT_EQ(found.first, expected[n].first) << "sector " << n;
      ASSERT_EQ(found.end, expected[n].end) << "sector " << n;
    }
  }
}

void check_runs(const Sectors& sectors, const Shape& s) {
  for (std::uint32_t from = 0; from < sectors.count(); from += 5) {
    for (std::uint32_t end = from + 1; end <= sectors.count(); end += 7) {
      const BlockRange blocks = sectors.blocks_in(from, end), first = sectors.blocks_in(from, from + 1),
                       last = sectors.blocks_in(end - 1, end);
      ASSERT_EQ(blocks.first, first.first);
      ASSERT_EQ(blocks.end, last.end);
      if (blocks.first >= blocks.end) continue;
      const Sectors::Mask touched = sectors.touched_by(blocks);
      ASSERT_EQ(touched & ~sectors.all(), 0U);
      for (std::uint32_t i = blocks.first; i < blocks.end; i += max_of(s.blocks / 16, 1U)) {
        ASSERT_EQ(sectors.touched_by({i, i + 1}) & ~touched, 0U) << "block " << i;
      }
    }
  }
}

class SectorsTest : public testing::TestWithParam<Placement> {};

TEST_P(SectorsTest, blocks_and_sectors_are_where_a_look_at_each_finds_them) {
  for (std::size_t c = 1; c < class_count; ++c) {
    const Shape& s = shapes_for(GetParam())[c];
    for (const std::uint32_t colour : {0U, s.colours / 2U, s.colours - 1U}) {
      SCOPED_TRACE("class of " + std::to_string(class_sizes.bytes[c]) + ", colour " + std::to_string(colour));
      const auto start = static_cast<std::uint32_t>(colour * cache_line);
      const Sectors sectors(s, start);
      check_cover(sectors, s);
      check_blocks(sectors, s, start);
      check_runs(sectors, s);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Placement, SectorsTest, testing::Values(Placement::none, Placement::punctuated, Placement::odd),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(SectorRuns, are_those_of_the_mask_each_once_in_order) {
  for (const Sectors::Mask mask : {Sectors::Mask{0}, Sectors::Mask{1}, ~Sectors::Mask{0}, bit(63), bit(0) | bit(63),
                                   Sectors::Mask{0xf0f00ff0ff00f01f}, ~bit(31)}) {
    Sectors::Mask met = 0;
    std::uint32_t before = 0;
    bool any = false;
    Sectors::for_each_run(mask, [&](std::uint32_t first, std::uint32_t end) {
      ASSERT_LT(first, end);
      ASSERT_TRUE(!any || first > before) << "runs do not touch";
      met |= Sectors::between(first, end);
      before = end;
      any = true;
    });
    EXPECT_EQ(met, mask);
  }
}

}  // namespace
}  // namespace terrace::heap
