// SPDX-License-Identifier: MIT OR Apache-2.0
// What a (slot, class) may hold, as the slow paths read and mark it.
#pragma once

#include "heap/size_class.h"
#include "level/slot.h"

namespace terrace::heap {

inline constexpr std::size_t bulky = 4 * kib;  // blocks above this get what the budget has, and may get nothing

inline std::uint8_t load_cap(const level::Slot& slot, HomeClass h) noexcept {
  return __atomic_load_n(&slot.cap[index(h)], __ATOMIC_RELAXED);  // relaxed: a hint of how much to hold
}

inline void mark_recent(level::Slot& slot, HomeClass h) noexcept {
  __atomic_store_n(&slot.recent[index(h)], std::uint8_t{1}, __ATOMIC_RELAXED);
}

}  // namespace terrace::heap
