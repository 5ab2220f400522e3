// SPDX-License-Identifier: MIT OR Apache-2.0
// Gives memory back: blocks unused for long, memory beyond the bound, and everything on request. It has no thread of its own;
// the paths between the levels call it.
#pragma once

#include "heap/upkeep/draining.h"
#include "os/limits.h"

namespace terrace::heap {

class Maintenance {
 public:
  constexpr Maintenance(span::Spans& spans, Slabs& slabs, Large& large, BlockLevels& levels, LargeSlots& large_slots) noexcept
      : spans_(spans),
        slabs_(slabs),
        large_(large),
        levels_(levels),
        large_slots_(large_slots),
        draining_(levels, large_slots) {}
  /// `decay_ms`: length of a tick; blocks unused for two ticks are given back. `budget`: what the levels may hold, in bytes; 0:
  /// by the rule.
  void open(std::uint64_t decay_ms, std::uint64_t budget) noexcept;
  void set_budget(std::uint64_t bytes) noexcept {
    budget_ = bytes;
    update_limits();
  }

  /// Runs due maintenance, if any.
  void tick() noexcept;
  /// Drains all levels and gives all free memory back. True: some was given back.
  bool trim() noexcept;
  /// Memory is short: whether another try makes sense.
  bool make_room(std::size_t bytes) noexcept;
  /// Empties the slot of a thread that ends or has ended; no other thread works in it.
  void drain_slot(level::Slot& slot) noexcept;
  /// Nobody uses the class of objects any more. What the levels hold of it goes to the slabs, and the slabs back; waits for
  /// others who have such objects on their way there. False: objects are still in use; then the number is never used again.
  bool remove_objects(HomeClass h) noexcept;
  Draining& draining() noexcept { return draining_; }

  // surplus.cpp: the bound on resident memory that is not live
  std::uint64_t surplus() const noexcept;
  /// Of the free blocks that share pages with blocks that left the slabs, those that are there for what slots and depots hold:
  /// an estimate by its share of all that left.
  std::uint64_t pinned_by_levels() const noexcept;
  std::uint64_t surplus_bound() noexcept {
    return within_limit(surplus_share() + spans_.freed_lately() + spans_.refaulted_beyond_bound());
  }
  /// What slots and depots may hold and hold.
  std::uint64_t levels_granted() const noexcept { return levels_.granted() + large_slots_.granted(); }
  /// Sum of the levels' budgets.
  std::uint64_t levels_limit() noexcept;
  /// Whether a slot may keep a large block of so many bytes from now on.
  bool may_keep(std::size_t bytes) noexcept {
    return surplus() + bytes <= surplus_bound() / 2 && (budget_ == 0 || levels_granted() + bytes <= budget_);
  }
  /// Sets the budgets from the bytes in use now.
  void update_limits() noexcept;
  /// Every path that may have raised the surplus or lowered the bound calls this last, without a lock.
  void keep_bound() noexcept {
    if (surplus() > surplus_bound() + accepted_excess()) [[unlikely]]
      purge_to_bound();
  }
  /// Called after a span was taken: near a memory limit, more memory in use lowers the bound.
  void keep_limit() noexcept;

 private:
  void drain_all() noexcept;
  std::uint64_t purged_bytes() const noexcept;
  void read_limits(os::Groups groups) noexcept;
  void read_limits_again() noexcept;
  std::uint64_t surplus_share() const noexcept;
  std::uint64_t within_limit(std::uint64_t bytes) const noexcept;
  std::uint64_t left_to_limit() const noexcept;
  void purge_to_bound() noexcept;
  void purge_at_rest(std::uint64_t now) noexcept;
  void purge_down_to(std::uint64_t target) noexcept;
  std::uint64_t unpin() noexcept;
  std::uint64_t live_in_slabs() const noexcept;
  void accept_excess(std::uint64_t bytes) noexcept;
  std::uint64_t accepted_excess() const noexcept {
    return live_in_slabs() < accepted_above_.load(std::memory_order_relaxed) ? 0 : accepted_.load(std::memory_order_relaxed);
  }

  span::Spans& spans_;
  Slabs& slabs_;
  Large& large_;
  BlockLevels& levels_;
  LargeSlots& large_slots_;
  Draining draining_;
  std::uint64_t decay_ms_ = 0, budget_ = 0;
  os::Limits limits_;              // guarded by the lock of draining, as
  unsigned ticks_to_reading_ = 0;  // of the limits
  // Of limits_: nine tenths of the memory, and processors. relaxed: old ones hold a moment longer.
  std::atomic<std::uint64_t> usable_{os::Limits::none};
  std::atomic<unsigned> processors_{~0U};

  std::uint64_t rest_purged_at_ = 0;  // ms; what was purged at rest is paid for by the time up to then. Guarded as limits_
  std::atomic<std::uint64_t> last_tick_{0};
  // Beyond the bound, in bytes: what could not be given back at the last try; while more than that is live in slabs. relaxed:
  // stale ones cost one more try.
  std::atomic<std::uint64_t> accepted_{0}, accepted_above_{0};
  // Slabs::returned() before the slabs were drained last. relaxed: an old one costs one more drain.
  std::atomic<std::uint64_t> drained_at_{~std::uint64_t{0}};
};

}  // namespace terrace::heap
