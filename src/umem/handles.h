// SPDX-License-Identifier: MIT OR Apache-2.0
// Objects of a cache with an arena of its own lie wherever the arena says, and magazines hold blocks of slabs. So a handle
// stands for each free one: a block of the cache's class, in which the object's address is written. What the levels give back
// is destructed, and goes back to the arena.
//
//   program     the object
//      | umem_cache_free: a handle is cut from its slab and names the object
//   magazines   the handle, for as long as an object of that size might stay
//      | umem_cache_alloc: the handle goes back to its slab
//   program     the object, still constructed
#pragma once

#include "umem/cache.h"

namespace terrace::umem {

constexpr bool may_have_handles(std::size_t size) noexcept { return size <= heap::ObjectRule::largest; }

/// Gives the cache a class of handles. False: there is no memory; each object will be constructed for its allocation.
bool make_handles(Cache& cache) noexcept;
inline bool has_handles(const Cache& c) noexcept { return c.source != nullptr && index(c.home) != 0; }

/// An object that was freed, constructed; null: there is none.
void* take_handled(Cache& cache) noexcept;
/// False: there is no memory for a handle, and the object is the caller's.
bool keep_handled(Cache& cache, void* object) noexcept;

}  // namespace terrace::umem
