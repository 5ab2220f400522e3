// SPDX-License-Identifier: MIT OR Apache-2.0
// The processor level: per last-level cache a store of whole chains. A chain enters and leaves as one word; its blocks are not
// touched. It is divided into shards, and a slot has its own: what it puts there, and takes back, lies in its core's caches,
// and nobody waits for a lock. Selection starts at the own shard, goes round those of the own processor, then round the other
// processors (the HAB paper's Listing 1). A bit for each stack tells which shards are worth asking: with 16 processors of 16
// shards a miss reads 32 bytes, not 256 lines of others.
#pragma once

#include "arch/chain.h"
#include "base/assert.h"
#include "base/counter.h"
#include "level/slot.h"
#include "os/mutex.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace::level {

inline constexpr std::size_t depot_keys = slot_words;
inline constexpr unsigned chains_per_stack = 43;  // with what else a stack has, six lines
inline constexpr unsigned most_shards = 16;       // of one processor, and bits of a word of marks; with more slots, some share

struct StackCounters {  // under the lock
  LockedCounter blocks_in, blocks_out, chains_in, chains_out;
};

/// The chains of one key (a class, with its home), oldest first. Its shard is locked.
class alignas(64) ChainStack {
 public:
  bool push(ChainWord chain) noexcept {
    TERRACE_ASSERT(chain::has_blocks(chain) && chain::count(chain) <= chain::longest, "depot: gets what is no chain");
    if (count_ == chains_per_stack) return false;
    chains_[count_] = chain;
    set_count(count_ + 1);
    counters_.blocks_in.add(chain::count(chain));
    counters_.chains_in.add();
    return true;
  }
  ChainWord pop_newest() noexcept {
    if (count_ == 0) return chain::empty;
    set_count(count_ - 1);
    return counted(chains_[count_]);
  }
  /// What has not been wanted for the longest time.
  ChainWord pop_oldest() noexcept;
  /// Whether anything was put or taken since the last call.
  bool was_recent() noexcept { return std::exchange(recent_, false); }
  // By anybody:
  unsigned size() const noexcept { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }  // relaxed: a hint
  /// The nth from the oldest; while nobody else works on the stack.
  ChainWord at(unsigned nth) const noexcept { return chains_[nth]; }
  const StackCounters& counters() const noexcept { return counters_; }

 private:
  void set_count(std::uint32_t n) noexcept {
    __atomic_store_n(&count_, n, __ATOMIC_RELAXED);  // read without the lock by size()
    recent_ = true;
  }

  ChainWord counted(ChainWord taken) noexcept {
    counters_.blocks_out.add(chain::count(taken));
    counters_.chains_out.add();
    return taken;
  }

  std::uint32_t count_ = 0;
  bool recent_ = false;
  StackCounters counters_;
  ChainWord chains_[chains_per_stack] = {};
};
static_assert(sizeof(ChainStack) == std::size_t{6} * 64);  // whole lines: neighbours are other keys, which others may want

/// One bit of a word that several shards share: set while a stack holds chains, and a little longer.
struct Mark {
  std::uint16_t* word = nullptr;
  std::uint16_t bit = 0;
};

/// The chains of the slots whose number is the same modulo the shards. Any thread may call any function.
///
/// Invariant: a stack that is not empty has its mark. It is set and taken away under the lock, by whoever pushes and by whoever
/// looked in vain: a stack that is filled and emptied in turn does not write the word that others read.
class Shard {
 public:
  bool push(std::size_t key, ChainWord chain, Mark mark) noexcept {
    const os::LockGuard guard(mutex_);
    if (!stacks_[key].push(chain)) return false;
    // relaxed: the mark is a hint of where to look, and who looks takes the lock.
    if ((__atomic_load_n(mark.word, __ATOMIC_RELAXED) & mark.bit) == 0)
      __atomic_fetch_or(mark.word, mark.bit, __ATOMIC_RELAXED);
    return true;
  }
  void unmark_if_empty(std::size_t key, Mark mark) noexcept {
    const os::LockGuard guard(mutex_);
    TERRACE_ASSERT(!has(key) || (__atomic_load_n(mark.word, __ATOMIC_RELAXED) & mark.bit) != 0,
                   "depot: a stack that is not empty has no mark");
    if (!has(key)) __atomic_fetch_and(mark.word, static_cast<std::uint16_t>(~mark.bit), __ATOMIC_RELAXED);
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
  const StackCounters& counters(std::size_t key) const noexcept { return stacks_[key].counters(); }
  const ChainStack& stack(std::size_t key) const noexcept { return stacks_[key]; }
  os::RankedMutex<os::Rank::depot>& mutex() noexcept { return mutex_; }

 private:
  os::RankedMutex<os::Rank::depot> mutex_;
  ChainStack stacks_[depot_keys];
};

/// Which shard a thread works on.
struct Place {
  unsigned processor = 0, shard = 0;
};

/// What take() found, and how many shards it asked for that.
struct Taken {
  ChainWord chain = chain::empty;
  bool foreign = false;  // it was another processor's
  unsigned asked = 0;
};

/// The depots of all processors. `storage` is zeroed memory for processors * shards shards, `marks` for depot_keys * processors
/// words; both are touched only where used.
class Depots {
 public:
  void open(Shard* storage, std::uint16_t* marks, unsigned processors, unsigned shards) noexcept {
    storage_ = storage;
    marks_ = marks;
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
  Taken take(Place own, std::size_t key) noexcept;
  /// Into the own shard. False: it is full; the chain stays the caller's.
  bool put(Place own, std::size_t key, ChainWord chain) noexcept { return at(own).push(key, chain, mark_of(own, key)); }
  /// Bit s: shard s of the processor may hold chains of the key.
  std::uint16_t marks(unsigned processor, std::size_t key) const noexcept {
    return __atomic_load_n(&marks_[key * processors_ + processor], __ATOMIC_RELAXED);  // relaxed: a hint
  }
  void unmark_if_empty(Place place, std::size_t key) noexcept { at(place).unmark_if_empty(key, mark_of(place, key)); }

 private:
  Mark mark_of(Place place, std::size_t key) const noexcept {
    return {.word = &marks_[key * processors_ + place.processor], .bit = static_cast<std::uint16_t>(1U << place.shard)};
  }

  Shard* storage_ = nullptr;
  std::uint16_t* marks_ = nullptr;  // of one key side by side
  unsigned processors_ = 0, shards_ = 0;
};

}  // namespace terrace::level
