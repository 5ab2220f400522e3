// SPDX-License-Identifier: MIT OR Apache-2.0
// Where in a slab the blocks of a class lie. Caches choose a set by address bits, so blocks at a stride that shares a large
// power of two with the span of all sets use few sets: a ring of 250 nodes 1,024 bytes apart uses 4 of 64. Placement keeps
// strides and slab starts such that any run of blocks covers all sets ("cache-index aware").
//
//   none        stride = class size
//   punctuated  a spacer of one line after each group of blocks of about 4 KiB, where the class size is an even number of lines
//   odd         the stride of classes from 512 bytes is rounded up to an odd number of lines
//   random      as punctuated, and malloc adds a line to the size with some probability (a Bernoulli trial)
#pragma once

#include "heap/classes/size_class.h"
#include "level/magazine.h"
#include "span/granule.h"

namespace terrace::heap {

enum class Placement : std::uint8_t { none, punctuated, odd, random };

/// Blocks of a granule or more. Their slab is given back as soon as it is free, so that other classes can use its pages.
constexpr bool fills_granules(std::size_t stride) noexcept { return stride >= span::granule_size; }

struct Shape {
  std::uint32_t stride = 0;
  std::uint32_t per_group = 1;    // blocks between two spacers
  std::uint32_t group_bytes = 1;  // with the spacer
  std::uint32_t blocks = 0;       // per slab
  std::uint32_t last = 0;         // offset of the last block
  std::uint16_t granules = 1;     // per slab
  std::uint16_t colours = 1;      // line offsets that the slab's start may have
  std::uint16_t colour_step = 0;
  // Reciprocals: x / d == x * reciprocal >> 44 for every x below 2^22 (a slab is shorter) and d up to 2^18.
  std::uint64_t stride_reciprocal = 0, group_reciprocal = 0;

  /// The largest power of two at whose multiples all blocks lie: it divides the stride, the bytes between groups if there are
  /// several, and a line if the slab's start takes colours.
  constexpr std::size_t alignment() const noexcept {
    std::size_t all = stride | span::granule_size;
    if (blocks > per_group) all |= group_bytes;
    if (colours > 1) all |= cache_line;
    return all & (~all + 1);
  }

  /// Bytes from the slab's first block to block i.
  constexpr std::uint32_t offset_of(std::uint32_t i) const noexcept {
    return i / per_group * group_bytes + i % per_group * stride;
  }
  /// The block that begins at `offset`, or `blocks` when none does. Requires offset < 2^22.
  constexpr std::uint32_t block_at(std::uint32_t offset) const noexcept {
    const auto group = static_cast<std::uint32_t>(offset * group_reciprocal >> reciprocal_shift);
    const std::uint32_t within = offset - group * group_bytes;
    const auto nth = static_cast<std::uint32_t>(within * stride_reciprocal >> reciprocal_shift);
    const std::uint32_t i = group * per_group + nth;
    return nth * stride == within && nth < per_group && i < blocks ? i : blocks;
  }

  /// Whether a block begins at `offset`; any number will do.
  constexpr bool begins_at(std::uintptr_t offset) const noexcept {
    if (offset > last) return false;
    const std::uint64_t group = offset * group_reciprocal >> reciprocal_shift;
    const std::uint64_t within = offset - group * group_bytes;
    const std::uint64_t nth = within * stride_reciprocal >> reciprocal_shift;
    return nth * stride == within && nth < per_group;
  }

  static constexpr unsigned reciprocal_shift = 44;
  static constexpr std::uint64_t reciprocal_of(std::uint32_t d) noexcept {
    return ((std::uint64_t{1} << reciprocal_shift) + d - 1) / d;
  }
};

struct CacheShape {
  static constexpr std::size_t l1_sets = 64;  // 32 to 48 KiB, 8 to 12 ways, 64-byte lines: all current x86-64 and most aarch64
  static constexpr std::size_t set_span = l1_sets * cache_line;
};

using Shapes = std::array<Shape, max_size_classes>;
const Shapes& shapes_for(Placement placement) noexcept;

/// Of a class that is made while the program runs: as `punctuated`, without the search for the best spacing. Requires
/// 0 < size <= SizeRule::largest and a power of two `align` up to a granule.
Shape shape_of_objects(std::size_t size, std::size_t align) noexcept;

/// Of magazines, by kind: each at a multiple of its size.
extern const std::array<Shape, level::magazine_kinds> magazine_shapes __attribute__((visibility("hidden")));

/// The class for a request with an alignment above SizeRule::quantum: the smallest whose blocks are large and aligned enough.
/// Up to 128 bytes that is often a plain class, which wastes less than the next power of two; but never a class below a line,
/// since those have a word for each home.
class AlignedClasses {
 public:
  /// Requires serve(size, align), align > quantum.
  constexpr SizeClass operator()(std::size_t size, std::size_t align) const noexcept {
    const std::size_t power = index(aligned_class_for(size, align));
    const std::size_t plain = next_[row(align)][index(class_for(max_of(size, cache_line)))];
    // Without a branch: a program's alignments alternate unpredictably.
    const bool is_plain = (plain != 0) & (class_sizes.bytes[plain] <= class_sizes.bytes[power]);
    return SizeClass{static_cast<std::uint8_t>(power ^ ((plain ^ power) & (std::size_t{0} - std::size_t{is_plain})))};
  }
  /// Whether any class does.
  static constexpr bool serve(std::size_t size, std::size_t align) noexcept {
    return size <= SizeRule::largest_aligned && align <= SizeRule::largest_alignment;
  }

  consteval explicit AlignedClasses(const Shapes& shapes) {
    for (std::size_t align = smallest; align <= largest_of_plain; align *= 2) {
      std::uint8_t next = 0;
      for (std::size_t c = class_sizes.plain; c > subline_classes; --c) {
        if (shapes[c].alignment() % align == 0) next = static_cast<std::uint8_t>(c);
        next_[row(align)][c] = next;
      }
    }
  }

 private:
  static constexpr std::size_t smallest = 2 * SizeRule::quantum, largest_of_plain = 2 * cache_line;
  static constexpr std::size_t rows = 4;  // the last one for all alignments beyond: no plain class
  static constexpr std::size_t row(std::size_t align) noexcept {
    return min_of(static_cast<std::size_t>(std::countr_zero(align) - std::countr_zero(smallest)), rows - 1);
  }
  // By alignment and class: the first plain class from this one on whose blocks are aligned; 0: none.
  std::array<std::array<std::uint8_t, class_sizes.plain + 1>, rows> next_{};
};
const AlignedClasses& aligned_classes_for(Placement placement) noexcept;

const char* name_of(Placement p) noexcept;

}  // namespace terrace::heap
