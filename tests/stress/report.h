// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstddef>

namespace stress {

/// One line on standard error, then the end of the process with status 1. Allocates nothing: the allocator may be broken.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

/// Memory for the program itself, from the kernel. While a limit holds it waits: limits are lifted soon.
void* map_pages(std::size_t bytes);

template <class T>
T* mapped(std::size_t count) {
  return static_cast<T*>(map_pages(count * sizeof(T)));
}

}  // namespace stress
