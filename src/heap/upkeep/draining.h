// SPDX-License-Identifier: MIT OR Apache-2.0
// Moves blocks from slots and depots to the slabs and spans: all of them, or those unused since the last round. A thread
// empties another's slot by stopping its words (percpu/stop_slot.h); one thread at a time does so, under the lock.
#pragma once

#include "heap/levels/block_levels.h"
#include "heap/levels/large_slots.h"

namespace terrace::heap {

class Draining {
 public:
  constexpr Draining(BlockLevels& levels, LargeSlots& large_slots) noexcept : levels_(levels), large_slots_(large_slots) {}

  /// Empties a slot that is stopped, or whose thread calls this or has ended, and returns its grants.
  void drain(level::Slot& slot) noexcept;
  // Under the lock:
  void drain_slots() noexcept;
  void drain_depots() noexcept;
  /// Part of a round over unused blocks; the first call begins a round. is_unfinished(): more calls are needed.
  void go_on_round() noexcept;
  bool is_unfinished() const noexcept { return round_unfinished_.load(std::memory_order_relaxed); }  // relaxed: a hint

  /// Whether drain_slots() and drain_depots() would find nothing.
  bool levels_are_empty() noexcept;

  // Without a lock, since they call functions of the program:
  /// What slots and depots hold of one class of objects goes to the slabs, as far as they can be looked at.
  void drain_objects(HomeClass h) noexcept;
  /// The same when nobody uses the class any more: of all slots, and then nobody is on the way to the slabs with one.
  void drain_abandoned(HomeClass h) noexcept;
  /// A round over unused prepared objects, by a thread that may call their owners.
  void age_prepared() noexcept;

  os::RankedMutex<os::Rank::maintenance>& mutex() noexcept { return mutex_; }

 private:
  void drain_words(level::Slot& slot, std::span<Word> held) noexcept;
  void drain_large_words(level::Slot& slot) noexcept;
  TERRACE_INLINE void drain_chunk(level::Slot& slot, level::ObjectWords& words, unsigned chunk, std::span<Word> held) noexcept;
  void look_at_chunks(level::Slot& slot, bool prepared, bool all, std::span<Word> held) noexcept;
  void look_at_words(level::Slot& slot, bool all) noexcept;
  void drain_own_slot(bool all) noexcept;
  bool age_slots() noexcept;
  void empty_own_chunks(level::Slot& slot) noexcept;
  void empty_taken() noexcept;
  template <class Take>
  bool take_with_notice(HomeClass& h, Take take) noexcept;

  // What age_prepared() has taken of a chunk and not emptied yet: here and not on its stack, so that who removes a class finds
  // its blocks, while a function of another cache runs. Guarded by mutex_.
  struct {
    unsigned chunk;
    Word words[level::words_per_chunk];
  } taken_{};
  Word held_[level::all_words] = {};  // what the slot's words held that is drained; guarded by mutex_
  BlockLevels& levels_;
  LargeSlots& large_slots_;
  os::RankedMutex<os::Rank::maintenance> mutex_;
  enum class Turn : std::uint8_t { slots, processors, nodes };
  Turn turn_ = Turn::slots;       // how far a round has come; guarded by mutex_, as
  std::uint32_t round_slot_ = 0;  // the next slot
  std::atomic<bool> round_unfinished_{false};
};

}  // namespace terrace::heap
