// SPDX-License-Identifier: MIT OR Apache-2.0
// A level of blocks between slots and slabs: depots, and the bytes that may lie in them. What nobody wants leaves, oldest
// first.
#pragma once

#include "heap/slab_level.h"
#include "heap/wanted.h"
#include "level/budget.h"
#include "level/depot.h"

namespace terrace::heap {

class DepotLevel {
 public:
  explicit constexpr DepotLevel(SlabLevel& slabs) noexcept : slabs_(slabs) {}
  /// False: there is no memory for it; nothing was opened.
  bool open(const level::Depots::Layout& layout) noexcept;

  level::Magazine take(const level::Locality& here, Wanted& wanted) noexcept;
  /// False: the budget is spent or the shard is full. A block that is there twice ends the process.
  bool give(const level::Locality& here, level::Magazine& m) noexcept;

  // Maintenance; one thread at a time.
  /// A piece of a round: the oldest magazine of each stack leaves in each round, so a depot that nobody wants anything from is
  /// empty after a while. Whether all stacks had their turn; then the next round is to begin.
  bool age() noexcept;
  void drain() noexcept;

  /// The invariant that does not hold, in words; null when all do. For tests, while no other thread is inside.
  const char* check() noexcept;

  // fork:
  void lock_all() noexcept;
  void unlock_all() noexcept;
  void reset_after_fork() noexcept;

  level::Depots& depots() noexcept { return depots_; }
  level::Budget& budget() noexcept { return budget_; }

 private:
  bool reserve(const level::Locality& here, HomeClass h, unsigned blocks) noexcept;
  void reclaim() noexcept;
  bool give_up_oldest(level::Shard& shard, std::size_t key) noexcept;

  SlabLevel& slabs_;
  level::Depots depots_;
  level::Budget budget_;
  SharedCounter refusals_;
  std::atomic<std::uint32_t> hand_{0};  // relaxed: any stack may be next
  std::uint32_t round_stacks_ = 0;      // how many had their turn
};

struct ProcessorLevel : DepotLevel {
  using DepotLevel::DepotLevel;
};
struct NodeLevel : DepotLevel {
  using DepotLevel::DepotLevel;
};

}  // namespace terrace::heap
