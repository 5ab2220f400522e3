// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include "base/counter.h"

namespace terrace::heap {

/// What happens rarely, per size class. The rest is counted where it happens: in slots, depots and slabs. How much was freed
/// follows: what left the slabs, and is neither back nor held by a level, is in use.
struct TransferCounters {
  SharedCounter handed_out;  // blocks that went to the program past the core level
  SharedCounter failed_refills;
  SharedCounter foreign;  // blocks that came from, or went into, another processor's, node's or home's buffer
};

}  // namespace terrace::heap
