// SPDX-License-Identifier: MIT OR Apache-2.0
// A request to the levels of blocks: for a magazine.
#pragma once

#include "heap/classes/size_class.h"
#include "level/magazine.h"

namespace terrace::heap {

struct Wanted {
  HomeClass h;
  unsigned rounds = 0;    // as many as the slot may hold; depots have what they have
  level::Magazine empty;  // one that may be filled, of whatever kind
  bool was_cut = false;   // its blocks come from a slab
  bool refused = false;   // there is no slab with a free block, and no memory for another
  bool foreign = false;   // it came from another processor's or node's depot
};

}  // namespace terrace::heap
