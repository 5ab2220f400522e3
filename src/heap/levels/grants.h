// SPDX-License-Identifier: MIT OR Apache-2.0
// The caps of (slot, class) pairs, as the slow paths read and mark them.
#pragma once

#include "heap/classes/size_class.h"
#include "heap/classes/transfer_sizes.h"
#include "level/slot.h"

namespace terrace::heap {

inline constexpr std::size_t bulky = 4 * kib;  // blocks above this get only what the budget has left, perhaps nothing

/// A refusal weighs more with full magazines: a class that has them is refused repeatedly, and a rarely used class never has.
constexpr std::uint64_t weight_of_refusal(unsigned blocks, SizeClass c) noexcept {
  constexpr std::uint64_t of_full_magazine = 256;
  return blocks >= max_cap(c) ? of_full_magazine : 1;
}

}  // namespace terrace::heap
