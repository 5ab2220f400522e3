// SPDX-License-Identifier: MIT OR Apache-2.0
// What surrounds a checked block, and what fills it when it is freed.
//
//      | front: as long as the alignment, at least 16 | the block: `size` bytes | back: 16 to 271 bytes |
//
// Both zones hold one byte value. Nobody may write them, so a byte that differs was written by somebody who missed the block.
// Of the front only the last `looked_at` bytes are filled and looked at: alignments may be large.
#pragma once

#include "base/bits.h"
#include "base/types.h"

#include <cstring>

namespace terrace::check {

inline constexpr unsigned char zone_byte = 0xfb;
inline constexpr unsigned char freed_byte = 0xdf;  // eight of them are no address: a freed block's pointers lead nowhere
inline constexpr std::size_t smallest_zone = 16;
inline constexpr std::size_t looked_at = 256;

/// Requires a power of two.
constexpr std::size_t front_of(std::size_t align) noexcept { return max_of(align, smallest_zone); }
/// Brings the end to a multiple of 16. Longer behind larger blocks, whose programs overrun them by more.
constexpr std::size_t back_of(std::size_t size) noexcept {
  const std::size_t to_quantum = (smallest_zone - size % smallest_zone) % smallest_zone;
  return to_quantum + smallest_zone + min_of(size / 8 / smallest_zone * smallest_zone, looked_at - smallest_zone);
}

inline bool holds_only(const std::byte* from, std::size_t bytes, unsigned char value) noexcept {
  if (bytes == 0) return true;
  // Each byte is compared with the one before it.
  return static_cast<unsigned char>(*from) == value && std::memcmp(from, from + 1, bytes - 1) == 0;
}

enum class Damage : std::uint8_t { none, before, beyond };

inline std::size_t looked_at_before(std::size_t align) noexcept { return min_of(front_of(align), looked_at); }

inline void fill_zones(std::byte* start, std::size_t size, std::size_t align) noexcept {
  const std::size_t front = looked_at_before(align);
  std::memset(start - front, zone_byte, front);
  std::memset(start + size, zone_byte, back_of(size));
}

inline Damage damage_of(const std::byte* start, std::size_t size, std::size_t align) noexcept {
  const std::size_t front = looked_at_before(align);
  if (!holds_only(start + size, back_of(size), zone_byte)) return Damage::beyond;
  return holds_only(start - front, front, zone_byte) ? Damage::none : Damage::before;
}

}  // namespace terrace::check
