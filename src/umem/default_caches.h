// SPDX-License-Identifier: MIT OR Apache-2.0
// The caches that umem_alloc() is served from when UMEM_DEBUG or UMEM_OPTIONS want more than malloc's size classes tell: one
// for each size of libumem's table, as size_add, size_remove and size_clear have changed it. Larger requests have pages of
// their own where objects are looked at, else they are large blocks.
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
/// Whether the caches are in use; else memory by size is malloc's.
bool default_caches_on() noexcept;

/// Whether what no cache serves is looked at as objects are: then it has pages of its own, as with `firewall`, as long as
/// there are mappings for it.
bool is_looked_at_apart() noexcept;
/// Whether that is so of a size.
inline bool is_apart(std::size_t size) noexcept { return size > largest_default && is_looked_at_apart(); }

/// Requires default_caches_on() and size != 0. Null: no memory.
void* allocate_by_size(std::size_t size) noexcept;
/// The same without pages of its own.
void* allocate_unwalled_by_size(std::size_t size) noexcept;
/// The same with them, and with byte `before` at a multiple of `align`. `has_other_way`: the caller knows one, so that the
/// program is not asked to give memory back for this.
void* allocate_walled_by_size(std::size_t size, std::size_t align, std::size_t before, bool has_other_way) noexcept;
/// Memory at a multiple of `align`, for umem_alloc_align().
void* allocate_aligned_by_size(std::size_t size, std::size_t align) noexcept;
/// `aligned`: it is to be memory of allocate_aligned_by_size().
void free_by_size(void* memory, std::size_t size, bool aligned = false) noexcept;

}  // namespace terrace::umem
