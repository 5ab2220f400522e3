// SPDX-License-Identifier: MIT OR Apache-2.0
#include "percpu/locked_slots.h"

#include "arch/cpu.h"
#include "os/io.h"
#include "os/rseq_area.h"
#include "os/yield.h"

namespace terrace::percpu {
namespace {

constinit LockedSlot slots[locked_slot_count];
constinit thread_local std::uint32_t my_id = 0;  // a forked child's single thread keeps its parent's: unique all the same

std::uint32_t thread_number() noexcept {
  if (my_id == 0) my_id = static_cast<std::uint32_t>(os::thread_id());
  return my_id;
}

// Slots that the thread holds: one, and one for each handler that has interrupted a holder. volatile: handlers read it.
constinit thread_local volatile unsigned held = 0;

constexpr int spins_before_yield = 100;

}  // namespace

LockedSlot& locked_slot(unsigned i) noexcept { return slots[i % locked_slot_count]; }

unsigned choose_locked_slot() noexcept {
  const int cpu = os::current_cpu();
  return (cpu >= 0 ? static_cast<unsigned>(cpu) : thread_number()) % locked_slot_count;
}

SlotLock::SlotLock(LockedSlot& slot) noexcept : slot_(slot) {
  const std::uint32_t me = thread_number();
  // Before the attempt: a handler that comes in between believes that something is held, and does not wait.
  const bool may_wait = held == 0;
  held = held + 1;
  for (int spins = 0;; ++spins) {
    std::uint32_t expected = 0;
    // [K1] acquire, pairs with the release of the last holder.
    ours_ = slot.holder.compare_exchange_strong(expected, me, std::memory_order_acquire, std::memory_order_relaxed);
    if (ours_) return;
    if (!may_wait) break;
    if (spins < spins_before_yield) {
      arch::pause();
    } else {
      os::yield();
    }
  }
  held = held - 1;
}

SlotLock::~SlotLock() {
  if (!ours_) return;
  slot_.holder.store(0, std::memory_order_release);  // [K1]
  held = held - 1;
}

void forget_holders() noexcept {
  for (LockedSlot& slot : slots) slot.holder.store(0, std::memory_order_relaxed);  // relaxed: there is one thread
}

}  // namespace terrace::percpu
