// SPDX-License-Identifier: MIT OR Apache-2.0
// Content of a slot's words, for maintenance: whether there is any, whether it changed since the last round, and one by one.
#pragma once

#include "base/bits.h"
#include "level/per_slot.h"
#include "level/slot.h"

#include <cstring>
#include <span>

namespace terrace::heap {

// A hash of the words. 0: all are empty.
inline std::uint64_t fingerprint(std::span<const Word> words) noexcept {
  std::uint64_t h = 0;
  for (const Word& word : words) {
    const Word w = level::peek(word);
    if (w != empty_word) h = (h ^ w) * 0x9e3779b97f4a7c15U + 1;
  }
  return h;
}

// A branch per word would take as long as the system calls that this avoids.
inline bool hold_nothing(std::span<const Word> words) noexcept {
  Word even = 0, odd = 0;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    even |= level::peek(words[i]);
    odd |= level::peek(words[i + 1]);
  }
  if (words.size() % 2 != 0) even |= level::peek(words.back());
  return (even | odd) == empty_word;
}

// body(number, words) with as many of the words as there is room for what they hold, again and again. Whether it said true each
// time.
template <class Body>
bool in_pieces(std::span<Word> words, std::span<Word> held, Body body) noexcept {
  for (std::size_t first = 0; first < words.size(); first += held.size()) {
    const std::span<Word> piece = words.subspan(first, min_of(held.size(), words.size() - first));
    if (hold_nothing(piece)) continue;
    std::memset(held.data(), 0, piece.size_bytes());
    if (!body(first, piece)) return false;
  }
  return true;
}

// Whether the slot holds blocks unused since the last round.
inline bool has_waited(level::Slot& slot, bool all) noexcept {
  const std::uint64_t now = fingerprint(level::words_of(slot));
  const bool waited = now != 0 && (all || now == slot.snapshot);
  slot.snapshot = waited ? 0 : now;
  return waited;
}

// The same for a chunk of object caches.
inline bool has_waited(level::ObjectWords& words, bool all) noexcept {
  const std::uint64_t now = fingerprint(level::words_of(words));
  const bool waited = now != 0 && (all || now == words.snapshot);
  words.snapshot = waited ? 0 : now;
  return waited;
}

// The same of its large blocks, which are few and matter, while much goes on elsewhere in the slot; or it may keep some, and
// does not.
inline bool large_has_waited(level::Slot& slot, bool all) noexcept {
  const std::uint64_t granted = __atomic_load_n(&slot.large_granted, __ATOMIC_RELAXED), held = fingerprint(slot.large);
  const std::uint64_t reused = __atomic_load_n(&slot.large_reused, __ATOMIC_RELAXED);
  const std::uint64_t now = granted == 0 && held == 0 ? 0 : (held + reused + granted) | 1;
  const bool waited = now != 0 && (all || now == slot.large_snapshot);
  slot.large_snapshot = waited ? 0 : now;
  return waited;
}

}  // namespace terrace::heap
