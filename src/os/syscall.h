// SPDX-License-Identifier: MIT OR Apache-2.0
// Raw system calls: an allocator may not touch errno, may not be interposed and may not be instrumented here.
#pragma once

#include "arch/syscall.h"

#include <sys/syscall.h>

namespace terrace::os {

/// The kernel's answer; failures are -4095..-1.
constexpr bool failed(long result) noexcept { return result < 0 && result >= -4095; }

}  // namespace terrace::os
