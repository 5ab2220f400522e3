// SPDX-License-Identifier: MIT OR Apache-2.0
// What stands in for a sequence where there is none: a lock per slot, held for a few instructions.
#pragma once

#include "arch/sequences.h"
#include "base/types.h"
#include "os/mutex.h"

#include <atomic>
#include <cstdint>

namespace terrace::percpu {

inline constexpr unsigned locked_slot_count = 64;

struct alignas(cache_line) LockedSlot {
  os::RankedMutex<os::Rank::slot> mutex;
  std::atomic<std::uint64_t> transaction{0};  // number of the last one begun here
};

/// Whose lock stands for slot i; beyond locked_slot_count slots share locks.
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

/// Calls body(i) with slot i of `count` held: the first, or, in a handler that has interrupted a holder, the next that is free.
template <class Body>
auto with_some_slot(unsigned first, unsigned count, Body body) noexcept {
  for (unsigned i = first;; i = i + 1 == count ? 0 : i + 1) {
    if (const SlotLock lock(locked_slot(i)); lock.ours()) return body(i);
  }
}

// fork: all are held from before to after it; the child's are free.
void lock_slots() noexcept;
void unlock_slots() noexcept;
void reset_slots_after_fork() noexcept;
/// In a forked child, which has one thread and may be in a handler that has interrupted a holder: nobody holds anything.
void forget_holders() noexcept;

}  // namespace terrace::percpu
