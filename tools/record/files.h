// SPDX-License-Identifier: MIT OR Apache-2.0
// The trace's file. No descriptor stays open between two calls: a program may close all descriptors, and open its own under
// the same numbers. By system calls, because libc's functions are points where a thread can be cancelled, and malloc is none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::record {

inline constexpr std::size_t path_bytes = 4096;

/// Makes a new file with the name `pattern`, %p replaced by `pid`; if that is there already (another program
/// image of the same process), with .2, .3, ... behind it. Writes its name to `path`.
bool create_file(const char* pattern, std::uint64_t pid, char* path) noexcept;

/// This part of the file, mapped shared; the file grows by it, if need be. Not mapped in children of fork. Null with errno.
void* map_part(const char* path, std::uint64_t offset, std::size_t bytes) noexcept;

}  // namespace terrace::record
