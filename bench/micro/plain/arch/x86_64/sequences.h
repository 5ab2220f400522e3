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

inline Word& word_of(Words words) noexcept { return *reinterpret_cast<Word*>(words.base); }

TERRACE_INLINE Sequence plain_pop(Word& word, void*& block) noexcept {
  const Word w = word;
  if (!names_something(w)) [[unlikely]]
    return Sequence::empty;
  if (!chain::intact(w)) [[unlikely]]
    return Sequence::corrupt;
  block = chain::first(w);
  word = chain::rest(w);
  return Sequence::done;
}

/// What lies at `word` bytes from `rounds`.
TERRACE_INLINE std::uint64_t& place_at(std::byte* rounds, std::uint64_t word) noexcept {
  return *reinterpret_cast<std::uint64_t*>(rounds + word);
}

template <int offset, int popped>
TERRACE_INLINE Sequence pop_round(const Area&, std::byte* const& base, std::size_t, std::byte* rounds, std::size_t cls,
                                  void*& block) noexcept {
  std::uint64_t& word = reinterpret_cast<std::uint64_t*>(mine + offset)[cls];
  const std::uint64_t w = word, round = place_at(rounds, w - 8);
  if (round == 0) [[unlikely]] {
    mine = base;
    return Sequence::empty;
  }
  if (++reinterpret_cast<std::uint64_t*>(mine + popped)[cls] == 0) [[unlikely]]  // a sample is due
    return Sequence::empty;
  block = reinterpret_cast<void*>(round);
  word = w - 8;
  return Sequence::done;
}

template <int shift, int offset>
TERRACE_INLINE Sequence push_round(const Area&, std::byte* const& base, std::byte* rounds, std::size_t cls,
                                   void* block) noexcept {
  std::uint64_t& word = reinterpret_cast<std::uint64_t*>(mine + offset)[cls];
  const std::uint64_t w = word, round = reinterpret_cast<std::uintptr_t>(block);
  if (place_at(rounds, w - 8) == round) [[unlikely]]
    return Sequence::freed_twice;
  if (place_at(rounds, w) == 0) [[unlikely]] {
    mine = base;
    return Sequence::full;
  }
  place_at(rounds, w) = round;
  word = w + 8;
  return Sequence::done;
}

inline Sequence take_all(const Area&, Words words, Word& chain) noexcept {
  Word& word = word_of(words);
  if (!names_something(word)) return Sequence::empty;
  chain = word;
  word = empty_word;
  return Sequence::done;
}

inline Sequence put_all(const Area&, Words words, Word chain) noexcept {
  Word& word = word_of(words);
  if (word != empty_word) return Sequence::occupied;
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
  Word& word = word_of(words);
  if (chain::count(word) >= cap) return Sequence::full;
  *static_cast<Word*>(block) = word;
  word = chain::make(block, chain::count(word) + 1);
  return Sequence::done;
}

}  // namespace terrace::arch
