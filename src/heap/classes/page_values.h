// SPDX-License-Identifier: MIT OR Apache-2.0
// The values of a byte of the page map. Each owner gets a range of values here; constants that depend on their number follow.
//
// free() uses the byte as the number of a word in the slot and pushes there without a check. So every value has a word. The
// word of a value that is not a block's never has a magazine, and the push fails.
#pragma once

#include "heap/classes/size_class.h"

namespace terrace::heap {

struct PageValues {
  std::size_t first, count;
  constexpr std::size_t end() const noexcept { return first + count; }
  constexpr bool has(std::size_t value) const noexcept { return value >= first && value < end(); }
};
consteval PageValues behind(PageValues others, std::size_t count) { return {.first = others.end(), .count = count}; }

inline constexpr PageValues nobodys_values{.first = 0, .count = 1};  // large blocks, free spans, memory of others
inline constexpr PageValues block_values = behind(nobodys_values, home_class_count - 1);
inline constexpr PageValues magazine_values = behind(block_values, level::magazine_kinds);

/// One value for all object caches; the span's record names the cache.
inline constexpr PageValues object_values = behind(magazine_values, 1);

inline constexpr std::size_t slab_class_count = magazine_values.end();  // classes of slabs that have a value each, and 0
static_assert(object_values.end() <= std::size(level::Slot{}.words) && object_values.end() <= page_map_values);

/// Sequences count their aborts by the number of the word: those on objects under one.
inline constexpr std::size_t word_of_objects = object_values.first;

/// The page map's value for a class's slabs.
constexpr std::uint8_t page_value(HomeClass h) noexcept {
  return static_cast<std::uint8_t>(is_object(h) ? object_values.first : index(h));
}

constexpr HomeClass home_of_magazines(unsigned kind) noexcept { return home_at(magazine_values.first + kind); }

}  // namespace terrace::heap
