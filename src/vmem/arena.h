// SPDX-License-Identifier: MIT OR Apache-2.0
// Arenas: ranges of numbers (addresses of memory, or anything else), cut into pieces and put together again. From
//   J. Bonwick, J. Adams: Magazines and Vmem: Extending the Slab Allocator to Many CPUs and Arbitrary Resources, USENIX 2001.
// include/sys/vmem.h has the interface, docs/theory/82-vmem.md why it is as it is.
//
// No lock is held while a source's functions run: they are the program's, or those of another arena. So a thread never holds
// the locks of two arenas, and arenas may import from each other in any order.
//
// Invariants, whenever the lock is free (check_invariants()):
//   A1  segments are in the order of addresses; each span's marker is followed by segments that are together the span
//   A2  no two neighbours in a span are free, and no imported span is free as a whole if the source takes spans back
//   A3  a free segment is in the list of its size, and nothing else is in a list
//   A4  an allocated or cached segment is in the table, and nothing else
//   A5  cached segments are those in the quantum caches, each in the cache of its size
//   A6  in use, total and imported bytes are the sums over segments
//   A7  the tree of spans has all markers, and no others
//   A8  the rotor, and where each walker goes on, are segments of the list
#pragma once

#include "base/counter.h"
#include "base/described.h"
#include "os/mutex.h"
#include "vmem/allocated_table.h"
#include "vmem/constraints.h"
#include "vmem/free_lists.h"
#include "vmem/quantum_caches.h"
#include "vmem/segment_pool.h"
#include "vmem/span_tree.h"

#include <sys/vmem.h>

namespace terrace::vmem {

/// Where an arena gets spans from.
struct Source {
  vmem_t* arena = nullptr;       // the first argument of both; may be null
  vmem_alloc_t* take = nullptr;  // null: nothing is imported
  vmem_free_t* give = nullptr;   // null: spans are kept for ever
  std::size_t least = 0;         // bytes: less is not asked for, unless that much is refused
  std::size_t quantum = 1;  // if it is an arena, its quantum: what is asked for is rounded up to that, as it would be there
};

/// Bytes and events. Cached bytes are in use. True at some recent moment, each by itself; exact while nobody works.
struct ArenaStatistics {
  std::uint64_t in_use, cached, total, imported, allocations, frees, failures;
};

class Arena {
 public:
  static constexpr std::size_t name_size = 32;  // with the terminating zero
  static constexpr std::uintptr_t nowhere = Constraints::nowhere;

  Arena(const char* name, std::size_t quantum, std::size_t most_cached, const Source& source) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  /// Everything that it keeps goes to the pool; its quantum caches are empty. Spans in which something is allocated are not
  /// given back to the source.
  void close() noexcept;

  /// Whether a span of that range can be: in whole quanta, without address 0 and the last quantum of all.
  bool is_span(std::uintptr_t start, std::size_t size) const noexcept;
  /// Adds a span that stays. False and errno: EINVAL, it overlaps another one; ENOMEM.
  bool add(std::uintptr_t start, std::size_t size) noexcept;
  /// Requires valid constraints. `cached`: from a quantum cache, if it has a piece of the size. `nowhere`: there is none.
  std::uintptr_t allocate(const Constraints& c, int flags, bool cached) noexcept;
  /// Ends the process if that is no allocated piece. `cached`: it may go to a quantum cache.
  void free(const char* function, std::uintptr_t start, std::size_t size, bool cached) noexcept;
  /// Whether the range lies in one span.
  bool contains(std::uintptr_t start, std::size_t size) noexcept;
  /// Whether an allocated piece begins there for which that many bytes were asked.
  bool has_piece(std::uintptr_t start, std::size_t asked) noexcept;
  void walk(int types, void (*visit)(void*, void*, std::size_t), void* argument) noexcept;
  /// Frees what is in the quantum caches. False: nothing was.
  bool empty_caches() noexcept;

  const char* name() const noexcept { return name_; }
  std::size_t quantum() const noexcept { return quantum_; }
  vmem_t* source() const noexcept { return source_.arena; }
  ArenaStatistics statistics() const noexcept;
  /// The invariant that does not hold, in words; null when all do. For tests: a walk over all segments.
  const char* check_invariants() noexcept;

  os::RankedMutex<os::Rank::arena>& mutex() noexcept { return mutex_; }
  /// In a forked child: the lock is free, and walks of threads that do not exist here are forgotten.
  void reset_after_fork() noexcept;

 private:
  friend class ArenaList;
  friend struct umem::Layout;
  friend class ArenaInnards;  // tests, which break invariants

  /// A walk that has unlocked the arena.
  struct Walker {
    Segment* at;  // where it goes on
    Walker* next;
    std::uintptr_t thread;
  };
  struct Place {
    Segment* segment = nullptr;
    std::uintptr_t address = nowhere;
  };
  struct Census;
  using Guard = os::LockGuard<os::Rank::arena>;

  // What one operation needs at most: a span, the free segment in it, and what is split off before and behind a piece.
  static constexpr std::size_t segments_per_operation = 4;

  // Under the lock:
  Place find(const Constraints& c, int flags) noexcept;  // fit.cpp
  Place best_fit(const Constraints& c) const noexcept;
  Place first_fit(const Constraints& c) const noexcept;
  Place next_fit(const Constraints& c) noexcept;
  Place instant_fit(const Constraints& c) const noexcept;
  std::uintptr_t take(const Constraints& c, int flags) noexcept;
  std::uintptr_t carve(Segment& free, std::uintptr_t address, const Constraints& c) noexcept;
  Segment& split(Segment& s, std::uintptr_t address) noexcept;
  void absorb(Segment& lower, Segment& upper) noexcept;
  void unlink(Segment& s) noexcept;
  void release(Segment& s, SegmentStack& gone) noexcept;
  Segment& insert_span(std::uintptr_t start, std::size_t size, bool imported) noexcept;
  void remove_span(Segment& marker) noexcept;
  Segment& checked(const char* function, std::uintptr_t start, std::size_t size) noexcept;
  bool is_visited(const Segment& s, int types) const noexcept;  // walk.cpp
  const char* check_span(const Segment& marker, Census& census) noexcept;
  const char* check_segment(const Segment& s, Census& census) noexcept;
  const char* check_sums(const Census& census) noexcept;
  const char* check_places() noexcept;

  // Without it:
  std::uintptr_t import(const Constraints& c, int flags) noexcept;  // import.cpp
  std::size_t bytes_to_import(const Constraints& c) const noexcept;
  void* ask_source(const Constraints& c, std::size_t bytes, int flags) noexcept;
  bool imports_from_arena() const noexcept { return source_.take == vmem_alloc; }
  std::uintptr_t adopt(std::uintptr_t start, std::size_t size, const Constraints& c) noexcept;
  void give_back(SegmentStack& spans) noexcept;

  os::RankedMutex<os::Rank::arena> mutex_;
  const std::size_t quantum_;
  char name_[name_size] = {};
  const Source source_;
  Arena* next_ = nullptr;  // by ArenaList

  SegmentStore store_;
  SegmentList segments_;
  SpanTree spans_;
  FreeLists free_;
  AllocatedTable allocated_;
  QuantumCaches caches_;
  // Next fit begins at the address; the segment is one that begins at or before it, mostly the last such.
  std::uintptr_t rotor_address_ = 0;
  Segment* rotor_;
  Walker* walkers_ = nullptr;

  LockedCounter in_use_, total_, imported_;       // bytes, modulo 2^64
  LockedCounter allocations_, frees_, failures_;  // events; frees are the program's
};

}  // namespace terrace::vmem
