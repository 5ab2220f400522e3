// SPDX-License-Identifier: MIT OR Apache-2.0
// Giving memory back: what has waited for long, what is beyond the bound, and all of it when it is asked for. There is no
// thread of our own; the paths between the levels call what is here.
#pragma once

#include "heap/block_levels.h"
#include "heap/large_slots.h"
#include "heap/options.h"
#include "os/limits.h"

namespace terrace::heap {

class Maintenance {
 public:
  constexpr Maintenance(span::Spans& spans, Slabs& slabs, Large& large, BlockLevels& levels, LargeSlots& large_slots) noexcept
      : spans_(spans), slabs_(slabs), large_(large), levels_(levels), large_slots_(large_slots) {}
  void open(const Options& options) noexcept;

  /// What is due, if anything is. The time, in coarse milliseconds.
  std::uint64_t tick() noexcept;
  /// Drains all levels and gives all free memory back. Whether anything was given back.
  bool trim() noexcept;
  /// Memory is short: whether another try makes sense.
  bool make_room(std::size_t bytes) noexcept;
  /// Of a slot that is stopped, or whose thread calls or is gone: everything it holds goes on, and its grants go back.
  void drain_slot(level::Slot& slot) noexcept;
  // Holding no lock while a program's function is called:
  /// What slots hold of one class of objects goes to the slabs, as far as they can be looked at.
  void empty_objects(HomeClass h) noexcept;
  /// The same when nobody uses the class any more: of all slots.
  void empty_abandoned(HomeClass h) noexcept;
  /// Then, when depots hold none either: until nobody is on the way to the slabs with one.
  void wait_for_others(HomeClass h) noexcept;
  /// A round over what waits of objects that are prepared: by whoever may call their owners.
  void age_prepared() noexcept;

  // surplus.cpp: the bound on all that is resident beyond what is live
  std::uint64_t surplus() const noexcept;
  /// Of the free blocks that share pages with blocks that left the slabs, those that are there for what slots and depots hold:
  /// an estimate by its share of all that left.
  std::uint64_t pinned_by_levels() const noexcept;
  std::uint64_t surplus_bound() noexcept {
    return within_limit(surplus_share() + spans_.freed_lately() + spans_.regretted_beyond_bound());
  }
  /// What slots and depots may hold and hold.
  std::uint64_t levels_granted() const noexcept { return levels_.granted() + large_slots_.granted(); }
  /// What the budgets of the levels add up to.
  std::uint64_t levels_limit() noexcept;
  /// Sets them, by what is in use now.
  void update_limits() noexcept;
  /// Every path that may have raised the surplus or lowered the bound ends with this, and holds no lock.
  void keep_bound() noexcept {
    if (surplus() > surplus_bound() + tolerated()) [[unlikely]]
      shed();
  }
  /// By who has taken a span: near a limit of memory, more in use is a lower bound.
  void keep_limit() noexcept;

  // fork:
  os::RankedMutex<os::Rank::maintenance>& mutex() noexcept { return mutex_; }

 private:
  void drain_all() noexcept;
  bool levels_are_empty() noexcept;
  void drain_slots() noexcept;
  void drain_depots() noexcept;
  void drain_words(level::Slot& slot, std::span<ChainWord> held) noexcept;
  void drain_large_words(level::Slot& slot) noexcept;
  TERRACE_INLINE void drain_chunk(level::Slot& slot, level::ObjectWords& words, unsigned chunk,
                                  std::span<ChainWord> held) noexcept;
  void look_at_chunks(level::Slot& slot, bool prepared, bool all, std::span<ChainWord> held) noexcept;
  void look_at_words(level::Slot& slot, bool all) noexcept;
  void drain_own_slot(bool all) noexcept;
  void go_on_round() noexcept;
  bool age_slots() noexcept;
  std::uint64_t purged_bytes() const noexcept;
  void empty_own_chunks(level::Slot& slot) noexcept;
  void empty_taken() noexcept;
  template <class Take>
  bool take_with_notice(HomeClass& h, Take take) noexcept;

  void read_limits(os::Groups groups) noexcept;
  void read_limits_again() noexcept;
  std::uint64_t surplus_share() const noexcept;
  std::uint64_t within_limit(std::uint64_t bytes) const noexcept;
  std::uint64_t left_to_limit() const noexcept;
  void shed() noexcept;
  void shed_down_to(std::uint64_t target) noexcept;
  std::uint64_t unpin() noexcept;
  void tolerate(std::uint64_t bytes) noexcept;
  std::uint64_t tolerated() const noexcept {
    return slabs_.in_use_bytes() < tolerated_above_.load(std::memory_order_relaxed)
               ? 0
               : tolerated_.load(std::memory_order_relaxed);
  }

  // What age_prepared() has taken of a chunk and not emptied yet: here and not on its stack, so that who removes a class finds
  // its blocks, while a function of another cache runs. Guarded by mutex_.
  struct {
    unsigned chunk;
    ChainWord words[level::words_per_chunk];
  } taken_{};
  ChainWord held_[level::all_words] = {};  // what the slot's words held that is drained; guarded by mutex_
  span::Spans& spans_;
  Slabs& slabs_;
  Large& large_;
  BlockLevels& levels_;
  LargeSlots& large_slots_;
  const Options* options_ = nullptr;
  os::Limits limits_;              // guarded by mutex_, as
  unsigned ticks_to_reading_ = 0;  // of the limits
  // Of limits_: nine tenths of the memory, and processors. relaxed: old ones hold a moment longer.
  std::atomic<std::uint64_t> usable_{os::Limits::none};
  std::atomic<unsigned> processors_{~0U};

  os::RankedMutex<os::Rank::maintenance> mutex_;
  std::atomic<std::uint64_t> last_tick_{0};
  enum class Turn : std::uint8_t { slots, processors, nodes };
  Turn turn_ = Turn::slots;       // how far a round has come; guarded by mutex_, as
  std::uint32_t round_slot_ = 0;  // the next slot
  std::atomic<bool> round_unfinished_{false};
  // Beyond the bound, in bytes: what could not be given back at the last try; while more than that is in use in slabs. relaxed:
  // stale ones cost one more try.
  std::atomic<std::uint64_t> tolerated_{0}, tolerated_above_{0};
  // Slabs::returns() before the slabs were drained last. relaxed: an old one costs one more drain.
  std::atomic<std::uint64_t> drained_at_{~std::uint64_t{0}};
};

}  // namespace terrace::heap
