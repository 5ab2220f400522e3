// SPDX-License-Identifier: MIT OR Apache-2.0
// The order in which locks are taken. In builds with assertions each thread remembers what it holds, and waiting for a lock in
// the wrong order ends the process with one line, whether or not it would have been a deadlock this time.
//
// Who holds a lock waits only for locks of inner ranks. Two of one rank are held by fork alone, which takes all there are, in
// an order that is always the same, and says so. try_lock() does not wait, so it may be called in any order; what it has locked
// counts like any other lock in what is waited for next.
//
// What is remembered is part of the thread's state (os/thread_state.h). A signal handler adds to what its thread holds and
// takes it away again; in a vfork child, which runs on its parent's thread-local data while the parent waits, it is the same;
// the child of fork gets a copy, in which reset_after_fork() clears what it unlocks. Between the handlers of fork, when a
// thread passes all locks, nothing is checked.
#pragma once

#include "base/assert.h"

#include <cstddef>
#include <cstdint>

namespace terrace::os {

/// Outermost first; lock_order.cpp has their names.
enum class Rank : std::uint8_t {
  lab_threads,    // of a LAB heap; what the embedder does meanwhile may allocate
  lab_drain,      // one thread at a time
  lab_sidelined,  // of one of its levels
  arena_list,     // of vmem
  arena,          // never two at once, but by fork; a function of the program's may run under it (vmem_walk) and allocate
  arena_pool,     // of segments, for all arenas
  object_caches,  // the list of all
  opening,        // of the heap, once
  ladder,         // of rungs, once
  environment,    // copied once
  registry,       // TERRACE_CHECK, as the next two
  quarantine,
  pool,
  object_classes,  // made and removed
  maintenance,     // the only one that may be held while a sequence runs, of those from here on
  switching,       // of the fast path, on and off
  thread_slots,
  slot,  // rung getcpu
  depot,
  slabs,
  spans,
  messages,  // of umem: anything may have to be said anywhere
  count_
};

class LockOrder {
 public:
  /// What a thread holds: how many of each rank. volatile: a signal handler that interrupts a change leaves things as it found
  /// them.
  struct Held {
    volatile std::uint32_t locks[static_cast<std::size_t>(Rank::count_)];
    volatile bool takes_all;
  };
  /// Ends the process if the calling thread must not wait for this lock now.
  static void expect(Rank rank) noexcept {
    if constexpr (assertions) look(rank);
  }
  static void locked(Rank rank) noexcept {
    if constexpr (assertions) remember(rank);
  }
  static void unlocked(Rank rank) noexcept {
    if constexpr (assertions) forget(rank);
  }
  /// While it exists the calling thread may take several locks of one rank.
  class TakesAll {
   public:
    TakesAll() noexcept {
      if constexpr (assertions) set_takes_all(true);
    }
    ~TakesAll() {
      if constexpr (assertions) set_takes_all(false);
    }
    TakesAll(const TakesAll&) = delete;
    TakesAll& operator=(const TakesAll&) = delete;
  };

  // For the conditions of assertions: without assertions nothing is known, and both are false.
  /// Whether the calling thread holds a lock of that rank, or passes all.
  static bool holds(Rank rank) noexcept {
    if constexpr (assertions) return knows(rank);
    return false;
  }
  /// Whether it holds one of a rank further in.
  static bool holds_within(Rank rank) noexcept {
    if constexpr (assertions) return knows_within(rank);
    return false;
  }

 private:
  static void look(Rank rank) noexcept;
  static void remember(Rank rank) noexcept;
  static void set_takes_all(bool value) noexcept;
  static void forget(Rank rank) noexcept;
  static bool knows(Rank rank) noexcept;
  static bool knows_within(Rank rank) noexcept;
};

}  // namespace terrace::os
