// SPDX-License-Identifier: MIT OR Apache-2.0
// Who called whom, for the reports of TERRACE_CHECK.
#pragma once

#include "base/format.h"

namespace terrace::os {

/// Before the first capture, outside of any lock and of malloc: loads libc's unwinder, which allocates.
void prepare_stacks() noexcept;
/// Return addresses, innermost first, without those in this object; how many. 0 until prepare_stacks(), and where libc has no
/// unwinder.
unsigned capture_stack(const void** frames, unsigned size) noexcept;
/// "program+0x1234 (function+0x10)": what addr2line -e takes.
void describe_code(Writer& out, const void* address) noexcept;

}  // namespace terrace::os
