// SPDX-License-Identifier: MIT OR Apache-2.0
// A level of blocks between slots and slabs: depots, and the bytes that may lie in them. Unused magazines leave, oldest first.
#pragma once

#include "base/described.h"
#include "heap/levels/duplicates.h"
#include "heap/levels/slab_level.h"
#include "heap/levels/wanted.h"
#include "level/budget.h"
#include "level/depot.h"

namespace terrace::heap {

class DepotLevel {
 public:
  /// `objects`: the depots of object caches, by chunk.
  constexpr DepotLevel(SlabLevel& slabs, level::Depots* objects) noexcept : slabs_(slabs), objects_(objects) {}
  /// False: there is no memory for it; nothing was opened.
  bool open(const level::Depots::Layout& layout) noexcept;
  /// The same for a chunk of object caches.
  bool open_objects(unsigned chunk) noexcept;

  level::Magazine take(const level::Locality& here, Wanted& wanted) noexcept;
  /// False: the budget is used up or the shard is full. A duplicate block ends the process.
  bool give(const level::Locality& here, level::Magazine& m) noexcept;

  /// As for caps: beyond the budget a thread makes room from time to time, from magazines unused lately and from the oldest
  /// ones of the refused class. It does so at the end of its operation, since the place of refusal is deep in the stack.
  void make_room(const level::Locality& here) noexcept;
  bool wants_room() const noexcept { return refused_.load(std::memory_order_relaxed) != 0; }  // relaxed: a hint

  // Maintenance; one thread at a time.
  /// Part of a round. Each round removes the oldest magazine of each stack, so an unused depot becomes empty. True: all stacks
  /// were visited, and the next call begins a round.
  bool age() noexcept;
  void drain() noexcept;
  // Prepared objects in the depots. Any thread may call these, without a lock.
  void age_prepared(HomeClass h) noexcept;
  /// All of one class.
  void drain_objects(HomeClass h) noexcept;

  /// The invariant that does not hold, in words; null when all do. For tests, while no other thread is inside.
  const char* check() noexcept;

  // fork:
  void lock_all() noexcept;
  void unlock_all() noexcept;
  void reset_after_fork() noexcept;

  level::Depots& depots() noexcept { return depots_; }
  level::Depots& depots_for(HomeClass h) noexcept { return is_object(h) ? objects_[ObjectClasses::chunk(h)] : depots_; }
  static std::size_t key_for(HomeClass h) noexcept { return is_object(h) ? ObjectClasses::within(h) : index(h); }
  /// Blocks in all of them.
  std::uint64_t blocks_of(HomeClass h) noexcept;
  level::Budget& budget() noexcept { return budget_; }

 private:
  friend struct introspect::Layout;
  bool reserve(HomeClass h, unsigned blocks) noexcept;
  void reclaim() noexcept;
  bool give_up_oldest(level::Shard& shard, std::size_t key, HomeClass h) noexcept;
  static bool map(const level::Depots::Layout& layout, level::Depots& depots) noexcept;
  bool age_memory() noexcept;
  void age_objects() noexcept;
  void drain_key(level::Depots& depots, std::size_t key, HomeClass h, unsigned most) noexcept;
  template <class Body>
  void for_each_shard(Body body) noexcept;
  template <class Body>
  void for_each_unprepared(Body body) noexcept;
  const char* check_stack(level::Depots& depots, level::Place place, std::size_t key, HomeClass h,
                          std::uint64_t& bytes) noexcept;

  SlabLevel& slabs_;
  level::Depots* objects_;
  level::Depots depots_;
  RoundsByHash* tables_ = nullptr;  // one for each shard
  level::Depots::Layout layout_;
  level::Budget budget_;
  SharedCounter refusals_;
  std::atomic<std::uint16_t> refused_{0};  // a class that room is to be made for, or 0
  std::atomic<std::uint32_t> hand_{0};     // relaxed: any stack may be next
  std::uint32_t round_stacks_ = 0;         // how many had their turn
};

struct ProcessorLevel : DepotLevel {
  using DepotLevel::DepotLevel;
};
struct NodeLevel : DepotLevel {
  using DepotLevel::DepotLevel;
};

}  // namespace terrace::heap
