// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstddef>
#include <sys/mman.h>

namespace stress {

/// One line on standard error, then the end of the process with status 1. Allocates nothing: the allocator may be broken.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

/// Memory for the program itself, from the kernel.
template <class T>
T* mapped(std::size_t count) {
  void* const p = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) fail("no memory for the test itself");
  return static_cast<T*>(p);
}

}  // namespace stress
