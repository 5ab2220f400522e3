// SPDX-License-Identifier: MIT OR Apache-2.0
// What a (slot, class) may hold, as the slow paths read and mark it.
#pragma once

#include "heap/classes/size_class.h"
#include "heap/classes/transfer_sizes.h"
#include "level/slot.h"

namespace terrace::heap {

inline constexpr std::size_t bulky = 4 * kib;  // blocks above this get what the budget has, and may get nothing

/// A class that works with full magazines and is refused does so all the time; one that is used now and then never gets there.
constexpr std::uint64_t weight_of_refusal(unsigned blocks, SizeClass c) noexcept {
  constexpr std::uint64_t of_full_magazine = 256;
  return blocks >= max_cap(c) ? of_full_magazine : 1;
}

}  // namespace terrace::heap
