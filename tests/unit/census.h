// SPDX-License-Identifier: MIT OR Apache-2.0
// Where every block of the heap is, counted by walking it: the bitmaps of all slabs, the rounds of all magazines that slots and
// depots have. No counter is read, so it can be compared with the statistics, which are made of counters.
//
// Also checked on the way, since a walk sees it: a block is in one magazine only, of the home class that the page map says, and
// not free in its slab's bitmap; each round is a block.
#pragma once

#include "heap/heap.h"

#include <array>
#include <cstdint>

namespace terrace::heap {

struct Census {
  struct Class {
    std::uint64_t out_of_slabs = 0;  // not free in a bitmap: in a level, or the program's
    std::uint64_t in_words = 0;      // loaded and previous magazines
    std::uint64_t in_depots = 0;
    std::uint64_t with_program() const { return out_of_slabs - in_words - in_depots; }
  };
  std::array<Class, max_size_classes> by_class{};
  std::uint64_t large_blocks = 0;
  std::uint64_t dirty_granules = 0;
};

/// Requires that no other thread uses the heap meanwhile. What is wrong on the way is a failure of the running test.
Census take_census();

}  // namespace terrace::heap
