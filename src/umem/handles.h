// SPDX-License-Identifier: MIT OR Apache-2.0
// Objects of a cache with an arena of its own lie wherever the arena says, those above heap::ObjectRule::largest are blocks of
// malloc's, and magazines hold blocks of slabs. So a handle stands for each free one: a block of the cache's class, in which
// the object's address is written. What the levels give back is destructed, and goes back where it came from.
//
//   program     the object
//      | umem_cache_free: a handle is cut from its slab and names the object
//   magazines   the handle, for as long as an object of that size might stay
//      | umem_cache_alloc: the handle goes back to its slab
//   program     the object, still constructed
#pragma once

#include "umem/cache.h"

namespace terrace::umem {

/// Gives the cache a class of handles. If there is no memory for that, each object will be constructed for its allocation.
void make_handles(Cache& cache) noexcept;

// Without a class of the cache's own:
/// Memory for an object. Null: there is none.
void* allocate_apart(Cache& cache) noexcept;
void free_apart(const Cache& cache, void* object) noexcept;
/// Without an arena: whether a block of malloc's begins there that may be an object.
bool is_large_enough(const Cache& cache, const void* object) noexcept;
/// Whether what begins there may be an object, in use or waiting: a block of malloc's, or a piece of the arena.
bool may_be_object(const Cache& cache, const void* object) noexcept;

// With handles:
/// A free, constructed object; null: none.
void* take_handled(Cache& cache) noexcept;
/// False: no memory for a handle; the object stays the caller's.
bool keep_handled(Cache& cache, void* object) noexcept;

}  // namespace terrace::umem
