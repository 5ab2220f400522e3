// SPDX-License-Identifier: MIT OR Apache-2.0
// Magazines for the sequences under delay, each around a multiple of 4 GiB as seen from the origin: so a word that is written
// in two halves is a wrong word in between.
#pragma once

#include "owned_blocks.h"

#include <sys/mman.h>

namespace terrace::under_delay {

constexpr unsigned magazine_count = 16, rounds_of_a_magazine = 60;
constexpr std::uint64_t apart = std::uint64_t{1} << 32, zeros = 4096;

inline std::byte* origin;                             // zeros lie around it
inline std::uint64_t magazine_words[magazine_count];  // empty

inline std::uint64_t& place_at(std::uint64_t word) { return *reinterpret_cast<std::uint64_t*>(origin + word); }
inline std::uint64_t round_below(std::uint64_t word) { return place_at(word - 8); }

inline void make_magazines() {
  constexpr std::size_t space = (magazine_count + 1) * apart + 2 * zeros;
  void* const all = mmap(nullptr, space, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) fail("no address space");
  origin = static_cast<std::byte*>(all) + zeros;
  for (unsigned i = 0; i < magazine_count; ++i) {
    std::uint64_t& w = magazine_words[i];
    w = (i + 1) * apart - rounds_of_a_magazine / 2 * 8;
    for (unsigned r = 0; r < rounds_of_a_magazine; ++r) place_at(w + 8 * r) = 1;  // not 0, and nobody's; beyond, zeros
  }
}

}  // namespace terrace::under_delay
