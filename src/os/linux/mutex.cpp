// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/mutex.h"

#include "arch/cpu.h"
#include "os/syscall.h"

#include <linux/futex.h>

namespace terrace::os {
namespace {

constexpr int spins_before_sleep = 100;  // about the time of one critical section of ours

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  return arch::raw_syscall(SYS_futex, static_cast<long>(reinterpret_cast<std::uintptr_t>(&word)),
                           operation | FUTEX_PRIVATE_FLAG, static_cast<long>(value));
}

}  // namespace

constinit const ThreadState* Mutex::holder_of_all_ = nullptr;

void Mutex::lock_contended() noexcept {
  for (int i = 0; i < spins_before_sleep; ++i) {
    if (state_.load(std::memory_order_relaxed) == unlocked && try_state()) return;
    arch::pause();
  }
  // From here on the word says "contended", so whoever unlocks it wakes one of us. [M1] acquire as in lock().
  while (state_.exchange(contended, std::memory_order_acquire) != unlocked) futex(state_, FUTEX_WAIT, contended);
}

void Mutex::wake_one() noexcept { futex(state_, FUTEX_WAKE, 1); }

}  // namespace terrace::os
