// SPDX-License-Identifier: MIT OR Apache-2.0
// Small files of the kernel.
#pragma once

namespace terrace::os {

/// Reads at most size - 1 bytes of the file into buf and ends them with a zero. The length, or -1; errno is not touched.
long read_file(const char* path, char* buf, unsigned long size) noexcept;

}  // namespace terrace::os
