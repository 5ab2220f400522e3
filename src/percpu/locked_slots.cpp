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

constexpr int spins_before_yield = 100;

}  // namespace

LockedSlot& locked_slot(unsigned i) noexcept { return slots[i % locked_slot_count]; }

unsigned choose_locked_slot() noexcept {
  const int cpu = os::current_cpu();
  return (cpu >= 0 ? static_cast<unsigned>(cpu) : thread_number()) % locked_slot_count;
}

SlotLock::SlotLock(LockedSlot& slot) noexcept : slot_(slot), ours_(true) {
  const std::uint32_t me = thread_number();
  for (int spins = 0;; ++spins) {
    std::uint32_t expected = 0;
    // [K1] acquire, pairs with the release of the last holder.
    if (slot.holder.compare_exchange_strong(expected, me, std::memory_order_acquire, std::memory_order_relaxed)) return;
    if (expected == me) {
      ours_ = false;
      return;
    }
    if (spins < spins_before_yield) {
      arch::pause();
    } else {
      os::yield();
    }
  }
}

SlotLock::~SlotLock() {
  if (ours_) slot_.holder.store(0, std::memory_order_release);  // [K1]
}

}  // namespace terrace::percpu
