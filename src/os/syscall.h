// SPDX-License-Identifier: MIT OR Apache-2.0
// Raw system calls: an allocator may not touch errno, may not be interposed and may not be instrumented here.
#pragma once

#include "arch/syscall.h"

#include <cstdint>
#include <sys/syscall.h>

namespace terrace::os {

/// An argument that is an address.
inline long word(const void* p) noexcept { return static_cast<long>(reinterpret_cast<std::uintptr_t>(p)); }

/// The kernel's answer; failures are -4095..-1.
constexpr bool failed(long result) noexcept { return result < 0 && result >= -4095; }

}  // namespace terrace::os
