// SPDX-License-Identifier: MIT OR Apache-2.0
// Patterns in free and in fresh objects, in plain loops that compilers vectorise.
#pragma once

#include "umem/debug.h"

namespace terrace::umem {

inline void fill(void* object, std::size_t bytes, std::uint64_t pattern) noexcept {
  auto* const words = static_cast<std::uint64_t*>(object);
  for (std::size_t i = 0; i < bytes / sizeof pattern; ++i) words[i] = pattern;
}

/// The first word that does not hold the pattern of free objects; null when all do.
inline const std::uint64_t* changed_word(const void* object, std::size_t bytes) noexcept {
  constexpr std::size_t at_once = 8;
  const auto* word = static_cast<const std::uint64_t*>(object);
  const auto* const end = word + bytes / sizeof *word;
  for (; end - word >= static_cast<std::ptrdiff_t>(at_once); word += at_once) {
    std::uint64_t differs = 0;
    for (std::size_t i = 0; i < at_once; ++i) differs |= word[i] ^ freed_pattern;
    if (differs != 0) break;
  }
  for (; word != end; ++word) {
    if (*word != freed_pattern) return word;
  }
  return nullptr;
}

}  // namespace terrace::umem
