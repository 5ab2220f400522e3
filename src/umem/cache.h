// SPDX-License-Identifier: MIT OR Apache-2.0
// Object caches: a program's description of its objects, on a class of blocks (heap/classes/object_classes.h) that the levels
// serve like malloc's.
//
//   slab        raw memory
//      | constructor, when somebody asks for an object and no level has one
//   program     constructed
//      | umem_cache_free
//   magazines   constructed, in slots and depots, until they wait for long or do not fit
//      | destructor
//   slab        raw memory
//
// Objects of caches without magazines are constructed for each allocation and destructed by each free. Objects that are no
// blocks of a class, being too large or an arena's: umem/handles.h.
#pragma once

#include "base/described.h"
#include "heap/classes/object_classes.h"
#include "os/mutex.h"
#include "umem.h"

#include <atomic>

struct umem_cache {
  // What the fast paths read.
  std::byte* base;             // null: there are none
  std::uintptr_t never_in_it;  // bits that are 0 in every object's address; all bits: no fast path of umem_cache_free

  char name[32];
  std::size_t size;   // as asked for
  std::size_t align;  // as is held
  umem_constructor_t* construct;
  umem_destructor_t* destruct;
  umem_reclaim_t* reclaim;
  void* private_data;
  vmem_t* source;                 // each object is a piece of this arena; null: a block of ours
  unsigned flags;                 // UMC_...
  unsigned debug;                 // Debug
  std::size_t verify;             // bytes of an object that hold patterns while it is free
  terrace::heap::HomeClass home;  // of objects or their handles; 0: neither
  bool has_class;                 // objects are its blocks
  bool has_handles;               // handles are
  // Past the levels: objects that are no blocks of the class, or sampled. Also who may only look at a cache counts them.
  mutable terrace::SharedCounter allocated, freed;
  terrace::SharedCounter failed;  // allocations
  umem_cache* next;
  umem_cache* previous;  // in the list of all
};

namespace terrace::umem {

using Cache = umem_cache;

struct Wanted {
  const char* name;
  std::size_t size, align;
  umem_constructor_t* construct;
  umem_destructor_t* destruct;
  umem_reclaim_t* reclaim;
  void* private_data;
  vmem_t* source;
  unsigned flags;
  bool serves_sizes = false;  // memory by size: what is asked for may be less than `size`
};

/// The cache of the object at p; null: none.
const Cache* cache_of(const void* p) noexcept;

/// False: the constructor failed.
inline bool construct(const Cache& c, void* object) noexcept {
  return c.construct == nullptr || c.construct(object, c.private_data, UMEM_DEFAULT) == 0;
}

/// Null: errno is set.
Cache* create(const Wanted& wanted) noexcept;
void destroy(Cache* cache) noexcept;

/// A free object of this slot, for caches without fast path; null: none, or it must be checked first.
void* allocate_at_hand(const Cache& cache) noexcept;
/// For an object of the program, after the fast path found none: one that the heap profiler samples. Null: it does not.
void* allocate_sampled(Cache& cache) noexcept __attribute__((cold, noinline));
/// After the fast path found no object. Null: no memory, or the constructor failed.
void* allocate_slow(Cache& cache) noexcept __attribute__((cold, noinline));
void free_slow(Cache& cache, void* object) noexcept __attribute__((cold, noinline));

/// All caches, in the order in which they were created.
class CacheList {
 public:
  void add(Cache& cache) noexcept;
  /// Waits while the walker visits this cache.
  void remove(Cache& cache) noexcept;
  /// Whether it is one of them. Requires that it can be read.
  bool has(const Cache& cache) noexcept;
  /// Calls body(cache) for each cache, with the lock free. One thread at a time; other caches than this one may be destroyed
  /// meanwhile.
  template <class Body>
  void for_each(Body body) {
    for (Cache* c = begin_walk(); c != nullptr; c = go_on()) body(*c);
  }
  /// Whether any cache may be asked for memory.
  bool has_reclaim() const noexcept { return reclaims_.load(std::memory_order_relaxed) != 0; }  // relaxed: a hint
  void reset_after_fork() noexcept {
    mutex_.reset_after_fork();
    visited_ = nullptr;
  }
  os::RankedMutex<os::Rank::object_caches>& mutex() noexcept { return mutex_; }

 private:
  friend struct Layout;
  Cache* begin_walk() noexcept;
  Cache* go_on() noexcept;

  os::RankedMutex<os::Rank::object_caches> mutex_;
  Cache* first_ = nullptr;
  Cache* last_ = nullptr;
  Cache* visited_ = nullptr;      // by the walker,
  const void* walker_ = nullptr;  // os::this_thread()
  std::atomic<unsigned> reclaims_{0};
};
extern CacheList caches __attribute__((visibility("hidden")));

}  // namespace terrace::umem
