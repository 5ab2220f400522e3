// SPDX-License-Identifier: MIT OR Apache-2.0
// The sequences as a thread level would have them: same words, same checks, plain code on a buffer that belongs to the
// calling thread. For one comparison only: what restartable sequences cost over thread-local ones (bench/micro/levels.py).
// The library built with it has one buffer and is good for ONE thread.
#pragma once

#include "arch/chain.h"
#include "base/attributes.h"

#include <cstring>

namespace terrace::arch {

inline constexpr std::size_t plain_slot_size = 8192;
alignas(plain_slot_size) inline std::byte nothing[plain_slot_size];
/// Where the thread's words are: in a thread level, the one load that finds them. Set by the first slow path.
inline thread_local std::byte* mine __attribute__((tls_model("initial-exec"))) = nothing;

inline ChainWord& word_of(Words words) noexcept { return *reinterpret_cast<ChainWord*>(words.base); }

TERRACE_INLINE Sequence plain_pop(ChainWord& word, void*& block) noexcept {
  const ChainWord w = word;
  if (!chain::has_blocks(w)) [[unlikely]]
    return Sequence::empty;
  if (!chain::intact(w)) [[unlikely]]
    return Sequence::corrupt;
  block = chain::first(w);
  word = chain::rest(w);
  return Sequence::done;
}

template <int offset, int popped>
TERRACE_INLINE Sequence pop(const Area&, std::byte* const& base, std::size_t, std::size_t cls, void*& block) noexcept {
  const Sequence r = plain_pop(reinterpret_cast<ChainWord*>(mine + offset)[cls], block);
  if (r == Sequence::done) [[likely]] {
    ++reinterpret_cast<std::uint64_t*>(mine + popped)[cls];
  } else {
    mine = base;
  }
  return r;
}

template <int shift, int offset, int caps>
TERRACE_INLINE Sequence push(const Area&, std::byte* const& base, std::size_t cls, void* block) noexcept {
  ChainWord& word = reinterpret_cast<ChainWord*>(mine + offset)[cls];
  const auto cap = static_cast<std::uint8_t>(mine[caps + static_cast<std::ptrdiff_t>(cls)]);
  if (static_cast<std::uint8_t>(word) >= cap) [[unlikely]] {
    mine = base;
    return Sequence::full;
  }
  if (static_cast<std::uint64_t*>(block)[1] == chain::key(block)) [[unlikely]]
    return Sequence::freed_twice;
  word = chain::pushed(word, block);
  return Sequence::done;
}

inline Sequence take_all(const Area&, Words words, ChainWord& chain) noexcept {
  ChainWord& word = word_of(words);
  if (!chain::has_blocks(word)) return Sequence::empty;
  chain = word;
  word = chain::empty;
  return Sequence::done;
}

inline Sequence put_all(const Area&, Words words, ChainWord chain) noexcept {
  ChainWord& word = word_of(words);
  if (word != chain::empty) return Sequence::occupied;
  word = chain;
  return Sequence::done;
}

inline Sequence bump(const Area&, Words words, std::size_t bytes, std::uint64_t& start) noexcept {
  std::uint64_t* const top = &word_of(words);
  if (top[0] + bytes < bytes || top[0] + bytes > top[1]) return Sequence::full;
  start = top[0];
  top[0] += bytes;
  return Sequence::done;
}

inline Sequence pop_word(const Area&, Words words, void*& block) noexcept { return plain_pop(word_of(words), block); }

inline Sequence push_word(const Area&, Words words, unsigned cap, void* block) noexcept {
  ChainWord& word = word_of(words);
  if (chain::count(word) >= cap) return Sequence::full;
  *static_cast<ChainWord*>(block) = word;
  word = chain::make(block, chain::count(word) + 1);
  return Sequence::done;
}

}  // namespace terrace::arch
