// SPDX-License-Identifier: MIT OR Apache-2.0
// Who called whom, for the reports of TERRACE_CHECK.
#pragma once

#include "base/format.h"

namespace terrace::os {

/// Return addresses, innermost first, without those in this object; how many. The first call loads libc's unwinder, which
/// allocates: call it without any lock. 0 until libc is initialised, and where it has no unwinder.
unsigned capture_stack(const void** frames, unsigned size) noexcept;
/// Where libunwind is installed, its unwinder is taken in place of libc's: it remembers how each function's frame looks, and is
/// several times as fast. Loaded by the first capture; call it before that, and before there is a second thread.
void prefer_libunwind() noexcept;
/// Whether the calling thread is in a handler of a signal: on an alternate stack, or with the code on its stack to which
/// handlers return, within 512 frames. False where the stack can not be unwound so far. One that was left by longjmp does not
/// count.
bool in_signal_handler() noexcept;
/// "program+0x1234 (function+0x10)": what addr2line -e takes.
void describe_code(Writer& out, const void* address) noexcept;

}  // namespace terrace::os
