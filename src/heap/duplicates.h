// SPDX-License-Identifier: MIT OR Apache-2.0
// Is a block twice in a magazine? Free compares the top round only; so this is asked before a magazine leaves the core level,
// and a block that was freed twice is told before anybody gets it twice, unless its copies lie in two magazines: then by the
// slabs, when both have come back.
#pragma once

#include "level/magazine.h"

namespace terrace::heap {

/// A block that is there twice, or null. Hashing with open addresses: about a nanosecond for each round.
inline const void* duplicate_in(level::Magazine m) noexcept {
  constexpr unsigned bits = 10;
  static_assert(level::largest_magazine < 1U << (bits - 2), "a table that is a quarter full at most: short runs");
  std::uint8_t nth[1U << bits] = {};  // 0: nothing; else the round's number + 1, which fits since there are at most 253
  const std::uint64_t* const rounds = m.begin();
  for (unsigned i = 0; i < m.count(); ++i) {
    const std::uint64_t round = rounds[i];
    auto at = static_cast<unsigned>((round >> 4) * 0x9e3779b97f4a7c15U >> (64 - bits));
    while (nth[at] != 0) {
      if (rounds[nth[at] - 1] == round) return reinterpret_cast<const void*>(round);  // NOLINT(performance-no-int-to-ptr)
      at = (at + 1) % (1U << bits);
    }
    nth[at] = static_cast<std::uint8_t>(i + 1);
  }
  return nullptr;
}

}  // namespace terrace::heap
