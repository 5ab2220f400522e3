// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/locked_slots.h"

#include "os/io.h"
#include "os/rseq_area.h"
#include "os/thread_state.h"

namespace terrace::percpu {
namespace {

constinit LockedSlot slots[locked_slot_count];
constinit thread_local std::uint32_t my_id = 0;  // a forked child's single thread keeps its parent's: unique all the same

std::uint32_t thread_number() noexcept {
  if (my_id == 0) my_id = static_cast<std::uint32_t>(os::thread_id());
  return my_id;
}

}  // namespace

LockedSlot& locked_slot(unsigned i) noexcept { return slots[i % locked_slot_count]; }

unsigned choose_locked_slot() noexcept {
  const int cpu = os::current_cpu();
  return (cpu >= 0 ? static_cast<unsigned>(cpu) : thread_number()) % locked_slot_count;
}

SlotLock::SlotLock(LockedSlot& slot) noexcept : slot_(slot) {
  volatile unsigned& held = os::thread_state().slot_locks;
  const bool may_wait = held == 0;
  held = held + 1;  // before the attempt: a handler that comes in between believes that something is held, and does not wait
  if (may_wait) {
    slot.mutex.lock();
    ours_ = true;
  } else {
    ours_ = slot.mutex.try_lock();
    if (!ours_) held = held - 1;
  }
}

SlotLock::~SlotLock() {
  if (!ours_) return;
  slot_.mutex.unlock();
  volatile unsigned& held = os::thread_state().slot_locks;
  held = held - 1;
}

void lock_slots() noexcept {
  const os::LockOrder::TakesAll all;
  for (LockedSlot& slot : slots) slot.mutex.lock();
}
void unlock_slots() noexcept {
  for (LockedSlot& slot : slots) slot.mutex.unlock();
}
void reset_slots_after_fork() noexcept {
  for (LockedSlot& slot : slots) slot.mutex.reset_after_fork();
}
void forget_holders() noexcept {
  for (LockedSlot& slot : slots) slot.mutex.forget_holder();
}

}  // namespace terrace::percpu
