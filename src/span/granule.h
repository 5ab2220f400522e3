// SPDX-License-Identifier: MIT OR Apache-2.0
// The unit of address space and the record kept for each: out of line, so that memory can be purged without losing it.
#pragma once

#include "base/types.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace terrace::span {

/// At least the largest page size, so that any granule can be purged on its own.
inline constexpr std::size_t granule_shift = 16;
inline constexpr std::size_t granule_size = std::size_t{1} << granule_shift;
constexpr std::uint64_t bytes_of(std::uint32_t granules) noexcept { return std::uint64_t{granules} << granule_shift; }
/// Four TiB of addresses, so that the heap goes on behind a terabyte that somebody else reserved; only what is used is mapped.
inline constexpr std::uint32_t max_granules = 1U << 26;

using GranuleIndex = std::uint32_t;
inline constexpr GranuleIndex no_granule = ~GranuleIndex{0};

enum class State : std::uint8_t {
  unmapped,  // never committed, or an obstacle
  clean,     // free, reads as zero, takes no memory
  dirty,     // free, holds pages
  purging,   // free, in no list but that of spans whose pages a thread is giving back without the lock
  interior,  // not the first granule of its span; the last one of a free span knows its `first`
  taken,     // somebody's; this value and those beyond tell whose
};
/// The state of the spans that owner n has. The layer above numbers its owners.
constexpr State taken_by(std::uint8_t n) noexcept {
  return State{static_cast<std::uint8_t>(static_cast<unsigned>(State::taken) + n)};
}

/// Of a span that is free, at its first granule.
struct FreePart {
  GranuleIndex next, previous;  // in a bin, or among those being purged
  GranuleIndex older, newer;    // dirty: given before this one, and after it
  std::uint32_t bare;           // clean: so many of its granules have records without pages
  std::uint64_t when;           // dirty: milliseconds at which it became free
  const void* purger;           // purging: os::this_thread() of whoever does it
};

/// NUMA nodes that spans are bound to; further ones share these.
inline constexpr unsigned most_nodes = 16;

inline constexpr std::size_t owners_part_size = 544;

/// What is known of a span stands at its first granule; `first` also at the last of any span, at every granule of one that is
/// cut into pieces. state, granules and first are written under the lock of the span level, since neighbours read them. The
/// rest is the span level's while the span is free, and its owner's while it is taken: who takes or gives a span finds nothing
/// of what the other has left there.
struct Record {
  State state;
  std::uint8_t node;       // that it was taken for; where the pages of a dirty span lie
  std::uint16_t number;    // its owner's, for what it likes: which class a slab is of
  std::uint32_t granules;  // length of the span
  GranuleIndex first;
  union {
    FreePart free;
    alignas(std::uint64_t) std::byte owners[owners_part_size];
  };

  /// What the owner of a taken span keeps here, which is zero in a span that nobody had before, and anything in another.
  template <class T>
  T& owners_part() noexcept {
    static_assert(sizeof(T) <= owners_part_size && alignof(T) <= alignof(std::uint64_t),
                  "the owner's part is longer than its room");
    static_assert(std::is_trivial_v<T>, "records are zeroed memory, not constructed");
    return *reinterpret_cast<T*>(owners);
  }
  template <class T>
  const T& owners_part() const noexcept {
    return const_cast<Record*>(this)->owners_part<T>();
  }
};
static_assert(sizeof(Record) == 560, "below 1 % of a granule");

}  // namespace terrace::span
