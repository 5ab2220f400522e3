// SPDX-License-Identifier: MIT OR Apache-2.0
// What a broken client is told. Each text exists once; tests match them. The writer and the end of the process are given by
// the layer that has system calls (os/report.cpp).
#pragma once

namespace terrace {

/// "terrace: <function>(): double free of 0x..." and the end.
[[noreturn]] void report_double_free(const char* function, const void* block) noexcept;
/// "terrace: <function>(): invalid pointer 0x..."
[[noreturn]] void report_invalid_pointer(const char* function, const void* pointer) noexcept;
/// "terrace: <function>(): block 0x... was written after it was freed"
[[noreturn]] void report_write_after_free(const char* function, const void* block) noexcept;
/// "terrace: internal error: <what>": a bug of ours.
[[noreturn]] void report_internal(const char* what) noexcept;
/// "terrace: <what> <value>: <consequence>", and goes on.
void warn(const char* what, const char* value, const char* consequence) noexcept;

}  // namespace terrace
