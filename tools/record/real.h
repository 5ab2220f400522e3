// SPDX-License-Identifier: MIT OR Apache-2.0
// The allocator behind the recorder: whatever the process would have without it.
#pragma once

#include <cstddef>

namespace terrace::record {

struct Real {
  void* (*malloc)(std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*calloc)(std::size_t, std::size_t) = nullptr;
  void* (*realloc)(void*, std::size_t) = nullptr;
  void* (*memalign)(std::size_t, std::size_t) = nullptr;
  void* (*aligned_alloc)(std::size_t, std::size_t) = nullptr;
  int (*posix_memalign)(void**, std::size_t, std::size_t) = nullptr;
};

/// Null while the very first call looks for the functions: dlsym itself may allocate. That memory comes from the function
/// below, is zero, and is never given back.
const Real* real() noexcept;
void* bootstrap(std::size_t size) noexcept;
bool is_bootstrap(const void* block) noexcept;
/// How far it reaches: a bound for who copies from it.
std::size_t bootstrap_bytes_from(const void* block) noexcept;

}  // namespace terrace::record
