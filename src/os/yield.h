// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include "os/syscall.h"

namespace terrace::os {

inline void yield() noexcept { arch::raw_syscall(SYS_sched_yield); }

}  // namespace terrace::os
