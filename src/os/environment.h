// SPDX-License-Identifier: MIT OR Apache-2.0
// The environment as it was when the process started. It is read once and what is ours is copied: a program may let `environ`
// dangle, or unmap it, long before the last option is looked up at its exit.
#pragma once

namespace terrace::os {

/// Copies the variables whose names begin with "TERRACE_" or "UMEM_" out of `variables`, or, if that is null, out of `environ`
/// or the kernel's copy, and behind them the program's terrace_options. The first call counts; environment() makes it if nobody
/// has.
void keep_environment(char* const* variables) noexcept;

/// The value that one of those variables had then, for good, or the program's own; null when there was none. In secure mode
/// only the program's own counts. Works before libc's own start-up is over.
const char* environment(const char* name) noexcept;

}  // namespace terrace::os
