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

/// Holds a slot, if it can be had. A signal handler that has interrupted a holder must not wait: not for its own thread, nor
/// for another whose handler may wait for it. So such a one gets a slot at once or not at all.
class SlotLock {
 public:
  explicit SlotLock(LockedSlot& slot) noexcept;
  ~SlotLock();
  SlotLock(const SlotLock&) = delete;
  SlotLock& operator=(const SlotLock&) = delete;
  bool ours() const noexcept { return ours_; }

 private:
  LockedSlot& slot_;
  bool ours_ = false;
};

/// Calls body(i, slot) with a slot held: the best one, or, in a handler that has interrupted a holder, the next that is free.
template <class Body>
auto with_some_slot(Body body) noexcept {
  for (unsigned i = choose_locked_slot();; i = (i + 1) % locked_slot_count) {
    LockedSlot& slot = locked_slot(i);
    if (const SlotLock lock(slot); lock.ours()) return body(i, slot);
  }
}

/// In a forked child, which has one thread: nobody holds anything.
void forget_holders() noexcept;

}  // namespace terrace::percpu
