// SPDX-License-Identifier: MIT OR Apache-2.0
// The processor level: per last-level cache a store of whole chains. A chain enters and leaves as one word; its blocks are not
// touched. Selection starts at the caller's own processor and goes round the others (the HAB paper's Listing 1).
#pragma once

#include "arch/chain.h"
#include "level/budget.h"
#include "os/mutex.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace::level {

inline constexpr std::size_t depot_keys = 256;
inline constexpr unsigned chains_per_key = 60;

/// The slot that a chain comes from, as far as eight bits can tell. Its blocks are in that core's caches.
using Origin = std::uint8_t;

/// The chains of one key (a class, with its home) on one processor. A line of its own for the lock and the top of the stack.
class alignas(64) ChainStack {
 public:
  bool push(ChainWord chain, Origin from) noexcept {
    const os::LockGuard guard(mutex_);
    if (count_ == chains_per_key) return false;
    chains_[count_] = chain;
    origins_[count_] = from;
    recent_ = true;
    __atomic_store_n(&count_, count_ + 1, __ATOMIC_RELAXED);
    return true;
  }
  /// The newest that came from there; if there is none, the oldest, which its own slot would ask for last.
  ChainWord pop(Origin from) noexcept {
    // relaxed: a chain that arrives in this moment may be missed; the caller then asks the next level.
    if (__atomic_load_n(&count_, __ATOMIC_RELAXED) == 0) return chain::empty;
    const os::LockGuard guard(mutex_);
    if (count_ == 0) return chain::empty;
    recent_ = true;
    for (unsigned i = count_; i-- > 0;) {
      if (origins_[i] == from) return remove(i);
    }
    return remove(0);
  }
  /// Oldest first: what has not been wanted for the longest time.
  ChainWord pop_oldest() noexcept;
  /// Whether anything was put or taken since the last call.
  bool was_recent() noexcept {
    const os::LockGuard guard(mutex_);
    return std::exchange(recent_, false);
  }
  unsigned size() const noexcept { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }
  /// Blocks in all chains.
  std::size_t blocks() noexcept;
  os::Mutex& mutex() noexcept { return mutex_; }

 private:
  ChainWord remove(unsigned at) noexcept;

  os::Mutex mutex_;  // rank: depot
  unsigned count_ = 0;
  bool recent_ = false;
  Origin origins_[chains_per_key] = {};
  ChainWord chains_[chains_per_key] = {};
};

struct Depot {
  ChainStack stacks[depot_keys];
};

/// The depots of all processors. `storage` is zeroed memory for `processors` depots; it is touched only where used.
class Depots {
 public:
  void open(Depot* storage, unsigned processors) noexcept {
    storage_ = storage;
    processors_ = processors;
  }
  unsigned processors() const noexcept { return processors_; }
  ChainStack& stack(unsigned processor, std::size_t key) noexcept { return storage_[processor].stacks[key]; }

  /// From the own processor first, then the others; `foreign` tells that it was another's.
  ChainWord take(unsigned own, std::size_t key, Origin from, bool& foreign) noexcept;
  /// Into the own processor's depot. False: it is full; the chain stays the caller's.
  bool put(unsigned own, std::size_t key, Origin from, ChainWord chain) noexcept { return stack(own, key).push(chain, from); }

 private:
  Depot* storage_ = nullptr;
  unsigned processors_ = 0;
};

}  // namespace terrace::level
