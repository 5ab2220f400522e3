// SPDX-License-Identifier: MIT OR Apache-2.0
// The processor level: per last-level cache a store of whole chains. A chain enters and leaves as one word; its blocks are not
// touched. It is divided into shards, and a slot has its own: what it puts there, and takes back, lies in its core's caches,
// and nobody waits for a lock. Selection starts at the own shard, goes round those of the own processor, then round the other
// processors (the HAB paper's Listing 1).
#pragma once

#include "arch/chain.h"
#include "level/budget.h"
#include "os/mutex.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace::level {

inline constexpr std::size_t depot_keys = 256;
inline constexpr unsigned chains_per_stack = 47;
inline constexpr unsigned most_shards = 16;  // of one processor; with more slots, some share

/// The chains of one key (a class, with its home), oldest first. Its shard is locked.
class alignas(64) ChainStack {
 public:
  bool push(ChainWord chain) noexcept {
    if (count_ == chains_per_stack) return false;
    chains_[count_] = chain;
    set_count(count_ + 1);
    return true;
  }
  ChainWord pop_newest() noexcept {
    if (count_ == 0) return chain::empty;
    set_count(count_ - 1);
    return chains_[count_];
  }
  /// What has not been wanted for the longest time.
  ChainWord pop_oldest() noexcept;
  /// Whether anything was put or taken since the last call.
  bool was_recent() noexcept { return std::exchange(recent_, false); }
  /// Blocks in all chains.
  std::size_t blocks() const noexcept;
  /// By anybody.
  unsigned size() const noexcept { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }  // relaxed: a hint

 private:
  void set_count(std::uint32_t n) noexcept {
    __atomic_store_n(&count_, n, __ATOMIC_RELAXED);  // read without the lock by size()
    recent_ = true;
  }

  std::uint32_t count_ = 0;
  bool recent_ = false;
  ChainWord chains_[chains_per_stack] = {};
};

class Shard {
 public:
  bool push(std::size_t key, ChainWord chain) noexcept {
    const os::LockGuard guard(mutex_);
    return stacks_[key].push(chain);
  }
  // A chain that arrives in this moment may be missed; the caller then asks the next shard or level.
  ChainWord pop_newest(std::size_t key) noexcept {
    if (!has(key)) return chain::empty;
    const os::LockGuard guard(mutex_);
    return stacks_[key].pop_newest();
  }
  ChainWord pop_oldest(std::size_t key) noexcept {
    if (!has(key)) return chain::empty;
    const os::LockGuard guard(mutex_);
    return stacks_[key].pop_oldest();
  }
  bool has(std::size_t key) const noexcept { return stacks_[key].size() != 0; }
  bool was_recent(std::size_t key) noexcept {
    const os::LockGuard guard(mutex_);
    return stacks_[key].was_recent();
  }
  std::size_t blocks(std::size_t key) noexcept {
    if (!has(key)) return 0;
    const os::LockGuard guard(mutex_);
    return stacks_[key].blocks();
  }
  os::Mutex& mutex() noexcept { return mutex_; }

 private:
  os::Mutex mutex_;  // rank: depot
  ChainStack stacks_[depot_keys];
};

/// Which shard a thread works on.
struct Place {
  unsigned processor = 0, shard = 0;
};

/// The depots of all processors. `storage` is zeroed memory for processors * shards shards; it is touched only where used.
class Depots {
 public:
  void open(Shard* storage, unsigned processors, unsigned shards) noexcept {
    storage_ = storage;
    processors_ = processors;
    shards_ = shards;
  }
  unsigned processors() const noexcept { return processors_; }
  unsigned shards() const noexcept { return shards_; }  // of each
  unsigned count() const noexcept { return processors_ * shards_; }
  /// The nth of all.
  Shard& at(unsigned nth) noexcept { return storage_[nth]; }
  Shard& at(Place place) noexcept { return storage_[place.processor * shards_ + place.shard]; }

  /// The newest chain of the own shard; if there is none, the oldest of another, which its own slot would ask for last.
  /// `foreign` tells that it was another processor's.
  ChainWord take(Place own, std::size_t key, bool& foreign) noexcept;
  /// Into the own shard. False: it is full; the chain stays the caller's.
  bool put(Place own, std::size_t key, ChainWord chain) noexcept { return at(own).push(key, chain); }

 private:
  Shard* storage_ = nullptr;
  unsigned processors_ = 0, shards_ = 0;
};

}  // namespace terrace::level
