// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/classes/size_class.h"

namespace terrace::heap {
namespace {

// Proofs that take the compiler a while stand in one file only.
static_assert(sizes_round_trip());

consteval bool homes_round_trip() {
  for (std::size_t c = 1; c < class_count; ++c) {
    for (std::size_t home = 0; home < max_homes; ++home) {
      const SizeClass size_class{static_cast<std::uint8_t>(c)};
      const HomeClass h = home_class(size_class, home);
      if (class_of(h) != size_class || (home == 0 && home_of(h) != 0)) return false;
      if (is_subline(size_class) && home_of(h) != home) return false;
    }
  }
  return true;
}
static_assert(homes_round_trip());

consteval bool room_to_grow_is_left() {
  for (std::size_t size = cache_line; size <= SizeRule::largest; size += 8) {
    if (size <= too_small_for(class_for(with_room_to_grow(size)))) return false;
  }
  return true;
}
static_assert(room_to_grow_is_left());

consteval level::AroundOrigin make_around_origin() {
  level::AroundOrigin a{};
  for (std::size_t i = 0; i < lookup_size; ++i) a.behind[i] = home_lookup[i];
  return a;
}

}  // namespace
}  // namespace terrace::heap

namespace terrace::level {

constinit const AroundOrigin around_origin = heap::make_around_origin();

}  // namespace terrace::level
