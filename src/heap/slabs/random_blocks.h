// SPDX-License-Identifier: MIT OR Apache-2.0
// Hardened build: the choice and order of free blocks that a slab hands out are unpredictable.
#pragma once

#include "base/bits.h"
#include "base/random.h"

#include <bit>
#include <cstdint>

namespace terrace::heap {

/// Takes up to `want` set bits out of the first `bits` bits of the map, from a random place on; writes their numbers in random
/// order. How many.
inline unsigned take_random(std::uint64_t* map, std::uint32_t bits, unsigned want, std::uint64_t* numbers,
                            Random& random) noexcept {
  const std::uint32_t words = (bits + 63) / 64;
  const std::uint32_t start = random.below(words);
  unsigned n = 0;
  for (std::uint32_t i = 0; i < words && n < want; ++i) {
    const std::uint32_t w = (start + i) % words;
    while (map[w] != 0 && n < want) {
      // A few tries at random; then the next one from there, which comes more often the longer the gap before it.
      std::uint32_t from = random.below(64);
      for (int tries = 0; tries < 8 && (map[w] >> from & 1) == 0; ++tries) from = random.below(64);
      const auto bit = (static_cast<std::uint32_t>(std::countr_zero(std::rotr(map[w], static_cast<int>(from)))) + from) % 64;
      map[w] &= ~(std::uint64_t{1} << bit);
      numbers[n++] = w * 64 + bit;
    }
  }
  for (unsigned i = n; i > 1; --i) {
    const unsigned k = random.below(i);
    const std::uint64_t other = numbers[k];
    numbers[k] = numbers[i - 1];
    numbers[i - 1] = other;
  }
  return n;
}

}  // namespace terrace::heap
