// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/classes/placement.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace terrace::heap {
namespace {

constexpr std::size_t ring = 250, ways = 8;

// As docs/theory/80-heap.md has them: tools/check_docs.py compares that with these lines.
static_assert(class_sizes.plain == 84 && class_sizes.aligned == 12 && class_count == 97);

// The most crowded set when `nodes` blocks of the class are taken from fresh slabs in order.
std::size_t worst_load(const Shape& s, std::size_t nodes) {
  std::vector<std::size_t> load(CacheShape::l1_sets);
  for (std::size_t n = 0; n < nodes; ++n) {
    const std::size_t slab = n / s.blocks;
    const std::size_t at = slab * s.granules * span::granule_size + slab * s.colour_step % s.colours * cache_line +
                           s.offset_of(static_cast<std::uint32_t>(n % s.blocks));
    ++load[at / cache_line % load.size()];
  }
  return *std::ranges::max_element(load);
}

class Aware : public testing::TestWithParam<Placement> {};

TEST_P(Aware, a_ring_of_250_nodes_of_any_class_fits_the_cache) {
  for (std::size_t c = 1; c <= class_sizes.plain; ++c) {
    EXPECT_LE(worst_load(shapes_for(GetParam())[c], ring), ways) << "class of " << class_sizes.bytes[c];
  }
}

INSTANTIATE_TEST_SUITE_P(Placement, Aware, testing::Values(Placement::punctuated, Placement::odd, Placement::random),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Placement, without_it_powers_of_two_crowd) {
  EXPECT_GT(worst_load(shapes_for(Placement::none)[index(class_for(1024))], ring), 7 * ways);
}

// Nor does the end of a slab: a limit of addresses counts both.
TEST(Placement, spacers_cost_little) {
  for (std::size_t c = 1; c <= class_sizes.plain; ++c) {
    const Shape& s = shapes_for(Placement::punctuated)[c];
    const double used = static_cast<double>(s.blocks) * class_sizes.bytes[c];
    const double slab = static_cast<double>(s.granules) * span::granule_size;
    EXPECT_GE(used / slab, fills_granules(s.stride) ? 8.0 / 9 : 0.92) << "class of " << class_sizes.bytes[c];
  }
}

TEST(Placement, every_block_of_every_class_is_found_by_its_start_and_by_nothing_else) {
  for (const Placement p : {Placement::none, Placement::punctuated, Placement::odd}) {
    for (std::size_t c = 1; c < class_count; ++c) {
      const Shape& s = shapes_for(p)[c];
      for (std::uint32_t i = 0; i < s.blocks; ++i) {
        ASSERT_EQ(s.block_at(s.offset_of(i)), i);
        ASSERT_EQ(s.block_at(s.offset_of(i) + 1), s.blocks);
        ASSERT_EQ(s.block_at(s.offset_of(i) + s.stride - 1), s.blocks);
      }
      const std::uint32_t end = s.offset_of(s.blocks - 1) + s.stride;
      for (std::uint32_t at = 0; at <= end; ++at) ASSERT_EQ(s.begins_at(at), s.block_at(at) != s.blocks) << at;
      for (std::uintptr_t at = 1; at != 0; at *= 2)
        ASSERT_FALSE(s.begins_at(end + at) || s.begins_at(std::uintptr_t{0} - at)) << at;
    }
  }
}

TEST(Placement, aligned_classes_are_aligned) {
  for (std::size_t c = class_sizes.plain + 1; c < class_count; ++c) {
    const Shape& s = shapes_for(Placement::punctuated)[c];
    EXPECT_EQ(s.alignment(), min_of<std::size_t>(class_sizes.bytes[c], SizeRule::largest_alignment));
  }
}

class Aligned : public testing::TestWithParam<Placement> {};

TEST_P(Aligned, requests_get_blocks_that_are_large_and_aligned_enough_in_slabs_of_any_colour) {
  const AlignedClasses& classes = aligned_classes_for(GetParam());
  for (std::size_t align = 32; align <= SizeRule::largest_alignment; align *= 2) {
    for (std::size_t size = 0; size <= SizeRule::largest; size += size % 7 == 0 ? 1 : 61) {
      ASSERT_TRUE(AlignedClasses::serve(size, align));
      const SizeClass c = classes(size, align);
      const Shape& s = shapes_for(GetParam())[index(c)];
      ASSERT_GE(class_size(c), size) << size << " at " << align;
      for (std::uint32_t colour = 0; colour < s.colours; ++colour) {
        for (std::uint32_t i = 0; i < s.blocks; ++i) {
          ASSERT_EQ((colour * cache_line + s.offset_of(i)) % align, 0U) << size << " at " << align;
        }
      }
    }
  }
}

TEST_P(Aligned, requests_at_a_line_waste_as_little_as_others) {
  const AlignedClasses& classes = aligned_classes_for(GetParam());
  EXPECT_FALSE(AlignedClasses::serve(SizeRule::largest + 1, cache_line));
  EXPECT_FALSE(AlignedClasses::serve(0, 2 * SizeRule::largest_alignment));
  for (std::size_t size = 512; size <= SizeRule::largest; size += 61) {
    EXPECT_EQ(class_size(classes(size, cache_line)), class_size(class_for(size))) << size;
  }
  EXPECT_EQ(class_size(classes(1088, cache_line)), 1088U);
}

INSTANTIATE_TEST_SUITE_P(Placement, Aligned,
                         testing::Values(Placement::none, Placement::punctuated, Placement::odd, Placement::random),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(SizeClass, aligned_requests_find_a_class_that_is_large_and_aligned_enough) {
  for (std::size_t align = 32; align <= SizeRule::largest_alignment; align *= 2) {
    for (std::size_t size = 0; size <= SizeRule::largest_aligned; size += 61) {
      const SizeClass c = aligned_class_for(size, align);
      ASSERT_TRUE(is_aligned_class(c));
      ASSERT_GE(class_size(c), size);
      ASSERT_EQ(class_size(c) % align, 0U);
    }
  }
  EXPECT_EQ(class_size(aligned_class_for(65536, 4096)), 65536U);  // no large block, which would take a span of its own
}

}  // namespace
}  // namespace terrace::heap
