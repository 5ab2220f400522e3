// SPDX-License-Identifier: MIT OR Apache-2.0
// Size classes. A rule, a table derived from it, and its proof at compile time.
//
//   size class   what is asked for: 1..plain_classes by size, then the aligned classes (powers of two from 128 bytes, whose
//                blocks lie at multiples of their size, or of 64 KiB: for aligned_alloc and friends)
//   home class   what the fast path of free finds in the page map. For most it is the size class. Blocks smaller than a cache
//                line must return to the slot that cut them, else several cores would use one line (passive false
//                sharing); so each slot has its own home classes for them.
#pragma once

#include "base/bits.h"
#include "base/types.h"
#include "level/slot.h"
#include "span/granule.h"

#include <array>
#include <bit>
#include <type_traits>

namespace terrace::heap {

struct SizeRule {
  static constexpr std::size_t quantum = 16;         // = alignof(max_align_t)
  static constexpr std::size_t linear_max = 256;     // one class per quantum up to here
  static constexpr std::size_t line_max = 2048;      // steps of at most a cache line up to here,
  static constexpr std::size_t fine_max = 8192;      // 8 classes per doubling up to here: coarser steps waste more, and spread
                                                     // nodes over more pages; 4 per doubling
  static constexpr std::size_t largest = 256 * kib;  // up to here; beyond, spans are served directly
  static constexpr std::size_t smallest_aligned = 128;
  static constexpr std::size_t largest_aligned = largest;
  // Slabs begin at multiples of a granule, and of no more.
  static constexpr std::size_t largest_alignment = span::granule_size;
};

inline constexpr std::size_t max_size_classes = level::slot_classes;

struct ClassSizes {
  std::array<std::uint32_t, max_size_classes> bytes{};
  std::size_t plain = 0;    // classes 1..plain are plain
  std::size_t aligned = 0;  // classes plain+1..plain+aligned
};

consteval ClassSizes make_sizes() {
  ClassSizes s;
  std::size_t n = 0;
  std::size_t size = 0;
  while (size < SizeRule::largest) {
    std::size_t step = SizeRule::quantum;
    if (size >= SizeRule::fine_max) {
      step = std::bit_floor(size) / 4;
    } else if (size >= SizeRule::linear_max) {
      step = std::bit_floor(size) / 8;
      if (size < SizeRule::line_max) step = min_of(step, cache_line);
    }
    size += step;
    s.bytes.at(++n) = static_cast<std::uint32_t>(size);
  }
  s.plain = n;
  for (size = SizeRule::smallest_aligned; size <= SizeRule::largest_aligned; size *= 2) {
    s.bytes.at(++n) = static_cast<std::uint32_t>(size);
  }
  s.aligned = n - s.plain;
  return s;
}

inline constexpr ClassSizes class_sizes = make_sizes();
inline constexpr std::size_t class_count = 1 + class_sizes.plain + class_sizes.aligned;  // with class 0
static_assert(class_count <= max_size_classes);
static_assert(class_sizes.bytes[class_sizes.plain] == SizeRule::largest);

/// Classes of object caches: numbers that no byte of the page map has (heap/classes/object_classes.h).
inline constexpr std::size_t first_object_class = 256;
constexpr bool is_object(SizeClass c) noexcept { return index(c) >= first_object_class; }
std::size_t object_size(SizeClass c) noexcept __attribute__((pure, visibility("hidden")));

constexpr std::size_t class_size(SizeClass c) noexcept { return is_object(c) ? object_size(c) : class_sizes.bytes[index(c)]; }
constexpr bool is_aligned_class(SizeClass c) noexcept { return index(c) > class_sizes.plain && !is_object(c); }

/// The aligned class whose blocks are at least `size` and at multiples of `align`. Requires size <= largest_aligned,
/// quantum < align <= largest_alignment. (Plain classes may do better: AlignedClasses in heap/classes/placement.h.)
constexpr SizeClass aligned_class_for(std::size_t size, std::size_t align) noexcept {
  const std::size_t bytes = max_of(std::bit_ceil(max_of(size, align)), SizeRule::smallest_aligned);
  const auto nth = static_cast<std::size_t>(std::countr_zero(bytes) - std::countr_zero(SizeRule::smallest_aligned));
  return SizeClass{static_cast<std::uint8_t>(class_sizes.plain + 1 + nth)};
}

// ---- home classes

enum class HomeClass : std::uint16_t {};
constexpr std::size_t index(HomeClass h) noexcept { return static_cast<std::size_t>(h); }
constexpr bool is_object(HomeClass h) noexcept { return index(h) >= first_object_class; }
/// Requires i < home_class_count, or the number of an object cache.
constexpr HomeClass home_at(std::size_t i) noexcept { return HomeClass{static_cast<std::uint16_t>(i)}; }

inline constexpr std::size_t home_class_count = level::slot_words;
inline constexpr std::size_t subline_classes = cache_line / SizeRule::quantum - 1;  // 16, 32, 48 bytes
inline constexpr std::size_t other_classes = max_size_classes - 1 - subline_classes;
#if defined(TERRACE_MAX_HOMES)  // a test: slots share homes on a machine of few cpus, too
inline constexpr std::size_t max_homes = TERRACE_MAX_HOMES;
#else
inline constexpr std::size_t max_homes = (home_class_count - 1 - other_classes) / subline_classes;
#endif
// Numbers: those of class 1 for each home, then of class 2 and 3, then one for each other class. Homes count downwards, so that
// word(home) of class c lies at slot(home) + (c * max_homes - home) words: one multiplication more exact than the slot's, and
// no other path (see fast_path.h).
inline constexpr std::size_t first_other_home = 1 + subline_classes * max_homes;
static_assert(first_other_home + other_classes <= home_class_count);

constexpr bool is_subline(SizeClass c) noexcept { return index(c) >= 1 && index(c) <= subline_classes; }

/// `home` is any number that stands for the slot; slots share homes beyond max_homes. An object cache has one home.
constexpr HomeClass home_class(SizeClass c, std::size_t home) noexcept {
  if (is_subline(c)) return home_at(index(c) * max_homes - home % max_homes);
  if (is_object(c)) return home_at(index(c));
  return home_at(index(c) == 0 ? 0 : index(c) - 1 - subline_classes + first_other_home);
}

inline constexpr std::size_t page_map_values = 256;

consteval std::array<std::uint8_t, page_map_values> make_classes() {
  std::array<std::uint8_t, page_map_values> table{};
  for (std::size_t i = 1; i < first_other_home + other_classes; ++i) {  // numbers beyond belong to no class: 0
    const bool other = i >= first_other_home;
    table.at(i) =
        static_cast<std::uint8_t>(other ? i - first_other_home + 1 + subline_classes : (i + max_homes - 1) / max_homes);
  }
  return table;
}
/// The size class of a home class from the page map; 0 for other values.
inline constexpr std::array<std::uint8_t, page_map_values> classes_of_homes = make_classes();
constexpr SizeClass class_of(HomeClass h) noexcept {
  if (is_object(h)) return SizeClass{static_cast<std::uint16_t>(index(h))};
  return SizeClass{classes_of_homes[index(h)]};
}

constexpr std::size_t home_of(HomeClass h) noexcept {
  return index(h) < first_other_home ? (max_homes - index(h) % max_homes) % max_homes : 0;
}

inline constexpr std::size_t lookup_size = SizeRule::largest / SizeRule::quantum;

consteval std::array<std::uint8_t, lookup_size> make_lookup() {
  std::array<std::uint8_t, lookup_size> table{};
  std::size_t c = 1;
  for (std::size_t i = 0; i < lookup_size; ++i) {
    if (i * SizeRule::quantum >= class_sizes.bytes[c]) ++c;
    table.at(i) = static_cast<std::uint8_t>(index(home_class(SizeClass{static_cast<std::uint8_t>(c)}, 0)));
  }
  return table;
}
/// By (size - 1) / quantum: the home class, for home 0. At run time it is read behind the magazines' origin.
inline constexpr std::array<std::uint8_t, lookup_size> home_lookup = make_lookup();
static_assert(lookup_size == sizeof(level::AroundOrigin::behind));

/// Requires size <= SizeRule::largest.
constexpr SizeClass class_for(std::size_t size) noexcept {
  const std::size_t i = (size - (size != 0 ? 1 : 0)) / SizeRule::quantum;
  return class_of(home_at(std::is_constant_evaluated() ? home_lookup[i] : level::around_origin.behind[i]));
}

/// realloc of a growing block allocates a quarter more: with classes in steps of a cache line it would otherwise copy a growing
/// string at every step.
inline constexpr std::size_t room_share = 4;
constexpr std::size_t with_room_to_grow(std::size_t size) noexcept {
  return min_of(size + size / room_share, SizeRule::largest);
}

/// realloc moves a block of the class to a smaller one for sizes up to this: three quarters of the block, but below every size
/// for which realloc chooses this class as room to grow, else the block would move back and forth. A smaller block in the same
/// line saves nothing.
inline constexpr std::size_t shrink_share = 4;
constexpr std::size_t too_small_for(SizeClass c) noexcept {
  const std::size_t have = class_size(c);
  if (have <= cache_line) return 0;
  const std::size_t most = have - have / shrink_share;
  if (is_aligned_class(c)) return most;
  return min_of(most, class_sizes.bytes[index(c) - 1] * room_share / (room_share + 1));
}

/// The sizes to which realloc changes a block without moving it: above + 1 to above + count. None for other than small blocks.
struct InPlace {
  std::uint32_t above = 0, count = 0;
  constexpr bool has(std::size_t size) const noexcept { return size - above - 1 < count; }
};

consteval std::array<InPlace, page_map_values> make_sizes_in_place() {
  std::array<InPlace, page_map_values> table{};
  for (std::size_t i = 1; i < home_class_count && index(class_of(home_at(i))) < class_count; ++i) {
    const SizeClass c = class_of(home_at(i));
    const std::size_t have = class_size(c), above = too_small_for(c);
    table.at(i) = {.above = static_cast<std::uint32_t>(above), .count = static_cast<std::uint32_t>(have - above)};
  }
  return table;
}
/// By what the page map says.
inline constexpr std::array<InPlace, page_map_values> sizes_in_place = make_sizes_in_place();

consteval bool sizes_round_trip() {
  for (std::size_t i = 0; i < lookup_size; ++i) {
    const std::size_t shortest = i * SizeRule::quantum + 1, longest = (i + 1) * SizeRule::quantum;  // of one entry
    const SizeClass c = class_for(shortest);
    if (class_for(longest) != c || class_size(c) < longest) return false;
    if (index(c) > 1 && class_sizes.bytes[index(c) - 1] >= shortest) return false;                        // a smaller would do
    if (shortest > SizeRule::linear_max && (class_size(c) - shortest) * 5 > class_size(c)) return false;  // waste below 20 %
  }
  return true;
}
static_assert(class_for(0) == SizeClass{1});

}  // namespace terrace::heap
