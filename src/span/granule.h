// SPDX-License-Identifier: MIT OR Apache-2.0
// The unit of address space and the record kept for each: out of line, so that memory can be purged without losing it.
#pragma once

#include "base/types.h"

#include <cstdint>

namespace terrace::span {

/// At least the largest page size, so that any granule can be purged on its own.
inline constexpr std::size_t granule_shift = 16;
inline constexpr std::size_t granule_size = std::size_t{1} << granule_shift;
/// Four TiB of addresses, so that the heap goes on behind a terabyte that somebody else reserved; only what is used is mapped.
inline constexpr std::uint32_t max_granules = 1U << 26;

using GranuleIndex = std::uint32_t;
inline constexpr GranuleIndex no_granule = ~GranuleIndex{0};

enum class State : std::uint8_t {
  unmapped,  // never committed, or an obstacle
  clean,     // free, reads as zero, takes no memory
  dirty,     // free, holds pages
  purging,   // free, in no list but that of spans whose pages a thread is giving back without the lock
  slab,
  large,
  interior,  // not the first granule of its span; the last one of a free span knows its `first`
};

/// What is known of a span stands at its first granule; `first` also at every granule of a slab, at the last of any span, and
/// at the one in which a large block starts. state, granules and first are written under the lock of the span level, since
/// neighbours read them; the rest belongs to whoever has the span.
struct Record {
  State state;
  std::uint8_t home_class;    // slab: see heap/size_class.h
  std::uint16_t block_count;  // slab: how many blocks fit.  large: see Moved in heap/large.cpp
  std::uint32_t granules;     // length of the span
  GranuleIndex first;
  GranuleIndex next, previous;  // in a free list, in the list of partial slabs
  std::uint32_t free_blocks;    // slab: how many of them are free
  union {
    std::uint32_t start;  // slab: colour.  large: line offset, in the granule where the block starts
    GranuleIndex older;   // dirty: given before this one
  };
  union {
    std::uint32_t scan;  // slab: no block is free in the words of free_map before this one.  large: that granule - first
    GranuleIndex newer;  // dirty: given after this one
  };
  std::uint64_t when;  // dirty: milliseconds at which it became free.  large: bytes asked for.  slab: see heap/slabs.cpp
  // slab: one bit per block, set = free. 4096 blocks of 16 bytes fit into one granule.
  std::uint64_t free_map[64];
};
static_assert(sizeof(Record) == 552, "below 1 % of a granule");

}  // namespace terrace::span
