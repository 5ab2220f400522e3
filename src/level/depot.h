// SPDX-License-Identifier: MIT OR Apache-2.0
// The processor level and the node level of blocks: per last-level cache, or per NUMA node, a store of magazines, full ones by
// home class and empty ones by kind. A magazine enters and leaves as one word; neither it nor its blocks are touched. A depot
// is divided into shards, one per slot as far as there are enough: its magazines stay in that core's caches, and no thread
// waits for a lock. A search starts at the own shard, continues with the others of the own depot, then with other near depots
// (the HAB paper's Listing 1). A bit for each stack tells which shards are worth asking: with 16 depots of 16 shards a miss
// reads 32 bytes, not 256 lines of others.
#pragma once

#include "base/assert.h"
#include "base/counter.h"
#include "base/described.h"
#include "level/locality.h"
#include "level/magazine.h"
#include "level/slot.h"
#include "os/mutex.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace terrace::level {

inline constexpr std::size_t block_keys = slot_words;  // home classes; then a key for the empty magazines of each kind
inline constexpr std::size_t depot_keys = block_keys + magazine_kinds;
constexpr std::size_t key_of_empties(unsigned kind) noexcept { return block_keys + kind; }
inline constexpr unsigned magazines_per_stack = 43;  // with what else a stack has, six lines
inline constexpr unsigned most_shards = 16;          // of one depot, and bits of a word of marks; with more slots, some share

struct StackCounters {  // under the lock
  LockedCounter blocks_in, blocks_out, magazines_in, magazines_out;
};

/// The magazines of one key, oldest first. Its shard is locked.
class alignas(64) MagazineStack {
 public:
  bool push(Magazine magazine) noexcept {
    TERRACE_ASSERT(magazine && magazine.count() <= magazine_capacity(magazine.kind()), "depot: gets what is no magazine");
    if (count_ == magazines_per_stack) return false;
    magazines_[count_] = magazine;
    set_count(count_ + 1);
    counters_.blocks_in.add(magazine.count());
    counters_.magazines_in.add();
    return true;
  }
  Magazine pop_newest() noexcept {
    if (count_ == 0) return {};
    set_count(count_ - 1);
    return counted(magazines_[count_]);
  }
  /// The magazine that was unused for the longest time.
  Magazine pop_oldest() noexcept;
  /// Whether anything was put or taken since the last call.
  bool was_recent() noexcept { return std::exchange(recent_, false); }
  // By anybody:
  unsigned size() const noexcept { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }  // relaxed: a hint
  /// The nth from the oldest. Requires that no other thread works on the stack.
  Magazine at(unsigned nth) const noexcept { return magazines_[nth]; }
  const StackCounters& counters() const noexcept { return counters_; }

 private:
  friend struct introspect::Layout;
  void set_count(std::uint32_t n) noexcept {
    __atomic_store_n(&count_, n, __ATOMIC_RELAXED);  // read without the lock by size()
    recent_ = true;
  }

  Magazine counted(Magazine taken) noexcept {
    counters_.blocks_out.add(taken.count());
    counters_.magazines_out.add();
    return taken;
  }

  std::uint32_t count_ = 0;
  bool recent_ = false;
  StackCounters counters_;
  Magazine magazines_[magazines_per_stack] = {};
};
static_assert(sizeof(MagazineStack) == std::size_t{6} * 64);  // whole lines: other threads use the neighbouring keys

/// One bit of a word that several shards share: set while a stack holds magazines, and a little longer.
struct Mark {
  std::uint16_t* word = nullptr;
  std::uint16_t bit = 0;
};

/// The magazines of the slots whose number is the same modulo the shards. Any thread may call any function.
///
/// Invariant: a stack that is not empty has its mark. A push sets it, and a pop of an empty stack clears it, under the lock; so
/// a stack that is filled and emptied in turn does not write the word that other threads read.
///
/// What follows a shard in memory are its stacks, one for each key.
class alignas(64) Shard {
 public:
  static constexpr std::size_t bytes(std::size_t keys) noexcept { return sizeof(Shard) + keys * sizeof(MagazineStack); }

  bool push(std::size_t key, Magazine magazine, Mark mark) noexcept {
    const os::LockGuard guard(mutex_);
    if (!stack_at(key).push(magazine)) return false;
    // relaxed: the mark is a hint; the search takes the lock.
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
  // A magazine that arrives in this moment may be missed; the caller then asks the next shard or level.
  Magazine pop_newest(std::size_t key) noexcept {
    if (!has(key)) return {};
    const os::LockGuard guard(mutex_);
    return stack_at(key).pop_newest();
  }
  Magazine pop_oldest(std::size_t key) noexcept {
    if (!has(key)) return {};
    const os::LockGuard guard(mutex_);
    return stack_at(key).pop_oldest();
  }
  bool has(std::size_t key) const noexcept { return stack(key).size() != 0; }
  bool was_recent(std::size_t key) noexcept {
    const os::LockGuard guard(mutex_);
    return stack_at(key).was_recent();
  }
  const StackCounters& counters(std::size_t key) const noexcept { return stack(key).counters(); }
  const MagazineStack& stack(std::size_t key) const noexcept { return reinterpret_cast<const MagazineStack*>(this + 1)[key]; }
  os::RankedMutex<os::Rank::depot>& mutex() noexcept { return mutex_; }

 private:
  friend struct introspect::Layout;
  MagazineStack& stack_at(std::size_t key) noexcept { return reinterpret_cast<MagazineStack*>(this + 1)[key]; }

  os::RankedMutex<os::Rank::depot> mutex_;
};

/// Of one depot.
struct Place {
  unsigned depot = 0, shard = 0;
};

/// Result of take(), and the number of shards that it searched.
struct Taken {
  Magazine magazine;
  bool foreign = false;  // it was another depot's
  unsigned asked = 0;
};

/// The depots of a level: one for each processor, or for each node.
class Depots {
 public:
  struct Layout {
    unsigned Locality::*where = &Locality::processor;
    unsigned count = 1;   // 0: there is no such level
    unsigned shards = 1;  // of each
    /// By depot: only those with the own one's number are asked. Null: all are.
    const std::uint8_t* group = nullptr;
    std::size_t keys = depot_keys;
    std::size_t shard_bytes() const noexcept { return Shard::bytes(keys); }
  };
  /// `storage` is zeroed memory for count * shards times shard_bytes(), `marks` for keys * count words; both are touched only
  /// where used.
  void open(const Layout& layout, std::byte* storage, std::uint16_t* marks) noexcept {
    layout_ = layout;
    storage_ = storage;
    marks_ = marks;
  }
  std::size_t keys() const noexcept { return layout_.keys; }
  bool exist() const noexcept { return storage_ != nullptr; }
  unsigned depots() const noexcept { return exist() ? layout_.count : 0; }
  unsigned shards() const noexcept { return layout_.shards; }
  unsigned count() const noexcept { return depots() * shards(); }  // of shards
  /// The nth of all.
  Shard& at(unsigned nth) noexcept { return *reinterpret_cast<Shard*>(storage_ + nth * layout_.shard_bytes()); }
  Shard& at(Place place) noexcept { return at(place.depot * layout_.shards + place.shard); }
  Place place(const Locality& here) const noexcept {
    const unsigned slot = here.slot, shards = layout_.shards;
    return {.depot = here.*layout_.where, .shard = slot < shards ? slot : slot % shards};  // seldom a division
  }

  /// The newest magazine of the own shard; else the oldest of another shard, whose own slot would use it last.
  Taken take(const Locality& here, std::size_t key) noexcept;
  /// Into the own shard. False: it is full; the magazine stays the caller's.
  bool put(const Locality& here, std::size_t key, Magazine magazine) noexcept {
    const Place own = place(here);
    return at(own).push(key, magazine, mark_of(own, key));
  }
  /// Bit s: shard s of the depot may hold magazines of the key.
  std::uint16_t marks(unsigned depot, std::size_t key) const noexcept {
    return __atomic_load_n(&marks_[key * layout_.count + depot], __ATOMIC_RELAXED);  // relaxed: a hint
  }
  void unmark_if_empty(Place place, std::size_t key) noexcept { at(place).unmark_if_empty(key, mark_of(place, key)); }

 private:
  friend struct introspect::Layout;
  Mark mark_of(Place place, std::size_t key) const noexcept {
    return {.word = &marks_[key * layout_.count + place.depot], .bit = static_cast<std::uint16_t>(1U << place.shard)};
  }
  bool near(unsigned depot, unsigned own) const noexcept {
    return layout_.group == nullptr || layout_.group[depot] == layout_.group[own];
  }

  Layout layout_;
  std::byte* storage_ = nullptr;
  std::uint16_t* marks_ = nullptr;  // of one key side by side
};

}  // namespace terrace::level
