// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include "base/counter.h"

namespace terrace::heap {

/// Counters of rare events, per size class; slots, depots and slabs count the rest. Blocks in use = blocks cut from slabs -
/// blocks returned - blocks that levels hold.
struct TransferCounters {
  SharedCounter handed_out;  // blocks that went to the program past the core level
  SharedCounter failed_refills;
  SharedCounter foreign;  // blocks that came from, or went into, another processor's, node's or home's buffer
};

}  // namespace terrace::heap
