// SPDX-License-Identifier: MIT OR Apache-2.0
// A chain of free blocks in one word: address of the first block << 8 | number of blocks.
//
// The first word of each free block is the word of the chain as it was before the block was pushed, so the count comes for
// free and every pop can compare two counts: a block that was written after it was freed is noticed before it is handed out.
// Critical sections have chains (terrace/cs.h); malloc has magazines (level/magazine.h), and one large block in a word.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace {

using ChainWord = std::uint64_t;

namespace chain {

inline constexpr ChainWord empty = 0;
inline constexpr ChainWord stopped = 0xff;
inline constexpr unsigned longest = 254;  // 255 is the count of `stopped`

inline unsigned count(ChainWord w) noexcept { return static_cast<unsigned>(w & 0xff); }
inline std::uint64_t* first(ChainWord w) noexcept {
  return reinterpret_cast<std::uint64_t*>(w >> 8);  // NOLINT(performance-no-int-to-ptr): what the word is for
}
inline bool has_blocks(ChainWord w) noexcept { return (w >> 8) != 0; }
inline ChainWord make(const void* block, unsigned n) noexcept {
  return static_cast<ChainWord>(reinterpret_cast<std::uintptr_t>(block)) << 8 | n;
}

/// The chain with `block` in front. Requires count(w) < longest; the caller owns both.
inline ChainWord pushed(ChainWord w, void* block) noexcept {
  *static_cast<ChainWord*>(block) = w;
  return make(block, count(w) + 1);
}
/// The chain without its first block. Requires has_blocks(w).
inline ChainWord rest(ChainWord w) noexcept { return *first(w); }
/// False: the first block of the chain was written after it was freed.
inline bool intact(ChainWord w) noexcept { return count(rest(w)) + 1 == count(w); }

}  // namespace chain
}  // namespace terrace
