// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include "os/syscall.h"

#include <cstdint>
#include <ctime>

namespace terrace::os {

inline void yield() noexcept { arch::raw_syscall(SYS_sched_yield); }

/// 50 us and what the kernel adds: also lets threads of a lower priority run.
inline void sleep_briefly() noexcept {
  constexpr timespec time = {.tv_sec = 0, .tv_nsec = 50000};
  arch::raw_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, static_cast<long>(reinterpret_cast<std::uintptr_t>(&time)));
}

}  // namespace terrace::os
