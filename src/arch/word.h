// SPDX-License-Identifier: MIT OR Apache-2.0
// The word that a sequence works on, one in each slot: it names a magazine (level/magazine.h), a large block (level/slot.h), or
// a chain of blocks (chain.h), always by a value of 256 or more. Below are the values of a word that names nothing.
#pragma once

#include <cstdint>

namespace terrace {

using Word = std::uint64_t;

inline constexpr Word empty_word = 0;
inline constexpr Word stopped_word = 0xff;  // who takes finds nothing, who gives finds no room: somebody empties the slot
constexpr bool names_something(Word w) noexcept { return w >> 8 != 0; }

}  // namespace terrace
