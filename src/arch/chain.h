// SPDX-License-Identifier: MIT OR Apache-2.0
// A chain of free blocks in one word: address of the first block << 8 | number of blocks.
//
// The first word of each free block is the word of the chain as it was before the block was pushed, so the count comes for
// free and every pop can compare two counts: a block that was written after it was freed is noticed before it is handed out.
// Programs that use critical sections have chains (terrace/cs.h); malloc has magazines (level/magazine.h).
#pragma once

#include "arch/word.h"

#include <cstddef>

namespace terrace::chain {

inline constexpr unsigned longest = 254;  // 255 is the count of `stopped_word`

inline unsigned count(Word w) noexcept { return static_cast<unsigned>(w & 0xff); }
inline std::uint64_t* first(Word w) noexcept {
  return reinterpret_cast<std::uint64_t*>(w >> 8);  // NOLINT(performance-no-int-to-ptr): what the word is for
}
inline Word make(const void* block, unsigned n) noexcept {
  return static_cast<Word>(reinterpret_cast<std::uintptr_t>(block)) << 8 | n;
}

/// The chain with `block` in front. Requires count(w) < longest; the caller owns both.
inline Word pushed(Word w, void* block) noexcept {
  *static_cast<Word*>(block) = w;
  return make(block, count(w) + 1);
}
/// The chain without its first block. Requires count(w) != 0.
inline Word rest(Word w) noexcept { return *first(w); }
/// False: the first block of the chain was written after it was freed.
inline bool intact(Word w) noexcept { return count(rest(w)) + 1 == count(w); }

}  // namespace terrace::chain
