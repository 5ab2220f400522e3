// SPDX-License-Identifier: MIT OR Apache-2.0
// A chain of free blocks in one word: address of the first block << 8 | number of blocks.
//
// The first word of each free block is the word of the chain as it was before the block was pushed, so the count comes for
// free and every pop can compare two counts: a block that was written after it was freed is noticed before it is handed out.
// The second word holds a key that says "free" (see key()); it is cleared when the block is handed out.
//
// In the hardened build both words are encoded, by a secret of the process and the block's own address, so that neither a
// forged link nor one copied from another block decodes to a chain; what decodes to none is no address of a block.
#pragma once

#include "base/hardened.h"

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

/// Set once, before there is a block; hardened build only.
extern std::uint64_t link_secret __attribute__((visibility("hidden")));

/// Between a chain word and the first word of the free block that holds it, both ways.
inline std::uint64_t encoded(const void* block, ChainWord w) noexcept {
  if constexpr (!hardened) return w;
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(block));
  return w ^ link_secret ^ (address << 21 | address >> 43);
}

/// What the second word of a free block says: its address, shifted. Different for each block, an address of nothing, and no
/// chain, so that no program has it at that very place by accident.
inline std::uint64_t key(const void* block) noexcept { return hardened ? ~encoded(block, make(block, 0)) : make(block, 0); }

/// The chain with `block` in front. Requires count(w) < longest; the caller owns both.
inline ChainWord pushed(ChainWord w, void* block) noexcept {
  auto* const words = static_cast<std::uint64_t*>(block);
  words[1] = key(block);
  words[0] = encoded(block, w);
  return make(block, count(w) + 1);
}
/// The chain without its first block. Requires has_blocks(w).
inline ChainWord rest(ChainWord w) noexcept { return encoded(first(w), *first(w)); }
/// False: the first block of the chain was written after it was freed.
inline bool intact(ChainWord w) noexcept {
  const ChainWord r = rest(w);
  if (count(r) + 1 != count(w)) return false;
  // Blocks lie at multiples of 16 below 2^47, and the last link is the empty chain: 21 bits of a forged one would have to be
  // right.
  return !hardened || ((r & (std::uint64_t{15} << 8)) == 0 && r >> 55 == 0 && (count(r) != 0 || r == empty));
}

}  // namespace chain
}  // namespace terrace
