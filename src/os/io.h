// SPDX-License-Identifier: MIT OR Apache-2.0
// Output that works in any state of the process, and the end of it.
#pragma once

#include <string_view>

namespace terrace::os {

inline constexpr int standard_error = 2;

/// Writes all of it, as far as the descriptor takes it.
void write_all(int fd, std::string_view text) noexcept;
/// The same, and removes from the front of `text` what is written. 0, or the error. EFAULT: the next byte can not be read.
int write_from(int fd, std::string_view& text) noexcept;
/// Opens for writing, truncated, close-on-exec; -1 on failure.
int create_file(const char* path) noexcept;
void close_file(int fd) noexcept;
/// A duplicate of fd, out of the way of a program's own descriptors, close-on-exec; fd itself when there is none.
int keep_open(int fd) noexcept;
int process_id() noexcept;
int thread_id() noexcept;
/// SIGABRT as abort(3) raises it: a handler may see it once, then the default action ends the process.
[[noreturn]] void abort_process() noexcept;

}  // namespace terrace::os
