// SPDX-License-Identifier: MIT OR Apache-2.0
// What stands in for a sequence where there is none: a lock per slot, held for a few instructions.
#pragma once

#include "base/types.h"

#include <atomic>
#include <cstdint>

namespace terrace::percpu {

inline constexpr unsigned locked_slot_count = 64;

struct alignas(cache_line) LockedSlot {
  std::atomic<std::uint32_t> holder{0};       // thread id, 0: free
  std::atomic<std::uint64_t> transaction{0};  // number of the last one begun here
};

LockedSlot& locked_slot(unsigned i) noexcept;

/// Where the calling thread should work: its cpu, or, without cpu numbers, something that stays the same for the thread.
unsigned choose_locked_slot() noexcept;

/// Holds a slot. `ours` is false when the calling thread holds it already: it is a signal handler that interrupted the holder,
/// and must not wait for itself.
class SlotLock {
 public:
  explicit SlotLock(LockedSlot& slot) noexcept;
  ~SlotLock();
  SlotLock(const SlotLock&) = delete;
  SlotLock& operator=(const SlotLock&) = delete;
  bool ours() const noexcept { return ours_; }

 private:
  LockedSlot& slot_;
  bool ours_;
};

}  // namespace terrace::percpu
