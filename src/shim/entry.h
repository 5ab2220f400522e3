// SPDX-License-Identifier: MIT OR Apache-2.0
// The semantics of libc's names, once; malloc.cpp and prefixed.cpp give them their names.
#pragma once

#include "heap/fast_path/fast_path.h"
#include "heap/heap.h"

#include <cerrno>

namespace terrace::shim {

void* out_of_memory() noexcept;  // errno = ENOMEM, null

TERRACE_INLINE void* allocate(std::size_t size) noexcept { return heap::allocate(size); }
TERRACE_INLINE void free_sized(void* p, std::size_t size) noexcept {
  heap::free_or(p, [=]() noexcept { heap::free_sized_slow(p, size); });
}
TERRACE_INLINE void free_aligned_sized(void* p, std::size_t alignment, std::size_t size) noexcept {
  heap::free_or(p, [=]() noexcept { heap::free_aligned_sized_slow(p, size, alignment); });
}

void* callocate(std::size_t count, std::size_t size) noexcept;
void* reallocate_slow(void* p, std::size_t size) noexcept __attribute__((visibility("hidden")));
TERRACE_INLINE void* reallocate(void* p, std::size_t size) noexcept {
  return heap::stays(p, size) ? p : reallocate_slow(p, size);
}
void* reallocate_array(void* p, std::size_t count, std::size_t size) noexcept;
void* aligned(std::size_t alignment, std::size_t size) noexcept;
int posix_aligned(void** out, std::size_t alignment, std::size_t size) noexcept;

}  // namespace terrace::shim
