// SPDX-License-Identifier: MIT OR Apache-2.0
// The caches that umem_alloc() is served from when UMEM_DEBUG or UMEM_OPTIONS want more than malloc's size classes tell: one
// for each size of libumem's table, as size_add, size_remove and size_clear have changed it. Larger requests are large blocks.
#pragma once

#include "umem/cache.h"
#include "umem/options.h"

#include <cstddef>

namespace terrace::umem {

inline constexpr std::size_t largest_default = 128 * 1024, default_step = 8;

/// [(size - 1) / default_step]; null while there are none. A debugger reads it.
extern Cache** default_caches __attribute__((visibility("hidden")));
/// Null: none has that size.
inline Cache* default_cache_for(std::size_t size) noexcept {
  return default_caches != nullptr && size - 1 < largest_default ? default_caches[(size - 1) / default_step] : nullptr;
}

/// Before the process has a second thread. False: there is no memory.
bool open_default_caches(Complain complain) noexcept;
/// Whether that has been done: else memory by size is malloc's.
bool default_caches_on() noexcept;

/// Requires default_caches_on() and size != 0. Null: no memory.
void* allocate_by_size(std::size_t size) noexcept;
/// The same of a size that is not is_to_be_walled(), whether or not it is.
void* allocate_unwalled_by_size(std::size_t size) noexcept;
/// The same of one that is, with byte `before` at a multiple of `align`.
void* allocate_walled_by_size(std::size_t size, std::size_t align, std::size_t before) noexcept;
void free_by_size(void* memory, std::size_t size) noexcept;

}  // namespace terrace::umem
