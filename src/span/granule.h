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

/// Of the free blocks of a slab, how many hold pages; all numbers are of blocks. See heap/slabs.h, [W].
struct Waste {
  std::uint16_t holes;    // free, and in a purged sector
  std::uint16_t stuck;    // were resident when the slab was looked at, and shared their pages with blocks in use
  std::uint16_t looked;   // in use then, or the most since
  std::uint16_t counted;  // resident, and worth a look: counted in the sum of all slabs
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
  std::uint16_t free_blocks;    // slab: how many of them are free
  std::uint8_t list;            // slab: see heap/slabs.h
  union {
    std::uint32_t start;  // slab: colour.  large: line offset, in the granule where the block starts
    GranuleIndex older;   // dirty: given before this one
    std::uint32_t bare;   // clean: so many of its granules have records without pages
  };
  union {
    std::uint32_t scan;  // slab: no block is free in the words of free_map before this one.  large: that granule - first
    GranuleIndex newer;  // dirty: given after this one
  };
  union {
    std::uint64_t when;  // dirty: milliseconds at which it became free.  large: bytes asked for
    Waste waste;         // slab
  };
  union {
    std::uint64_t purged;  // slab: one bit per sector (heap/sectors.h), set = its pages are given back
    const void* purger;    // purging: os::this_thread() of whoever does it
  };
  // slab: one bit per block, set = free. 4096 blocks of 16 bytes fit into one granule.
  std::uint64_t free_map[64];
};
static_assert(sizeof(Record) == 560, "below 1 % of a granule");

}  // namespace terrace::span
