// SPDX-License-Identifier: MIT OR Apache-2.0
// The core level of blocks: slots whose words name magazines, on every rung of the ladder, and how many rounds each may hold.
// Slow paths only; the fast paths of the rungs with sequences are in fast_path.h.
#pragma once

#include "heap/slab_level.h"
#include "level/budget.h"
#include "level/per_slot.h"
#include "level/slot.h"

namespace terrace::heap {

class Maintenance;

class CoreLevel : public level::PerSlot<level::Slot> {
 public:
  constexpr CoreLevel(SlabLevel& slabs, Maintenance& maintenance) noexcept : slabs_(slabs), maintenance_(maintenance) {}
  /// False: there is no memory for it; nothing was opened.
  bool open(const percpu::Ladder& ladder, unsigned slots, level::ThreadSlots<level::Slot>::Drain drain) noexcept;

  /// The number that stands for a slot where blocks have a home.
  std::size_t home_of(const level::Slot& slot) const noexcept {
    const std::size_t number = number_of(slot);
    return homes_are_slots() ? number : 1 + number % (max_homes - 1);
  }
  /// Else there are more slots than homes, and slots share homes; none has home 0, whose words malloc pops from then.
  bool homes_are_slots() const noexcept { return slot_count() <= max_homes || !has_sequences(); }
  /// The word of the slot that malloc pops from. It is the one that blocks of the slot's home are pushed onto; where slots
  /// share homes, the fast path can not compute that one, and uses home 0's, which no slot has.
  HomeClass own_word(const level::Slot& slot, SizeClass c) const noexcept {
    return home_class(c, homes_are_slots() ? home_of(slot) : 0);
  }

  /// From a word to the program, and counted.
  void* pop(level::Slot& chosen, HomeClass h) noexcept;
  arch::Sequence push(level::Slot& chosen, HomeClass h, void* block) noexcept;
  /// The loaded magazine, empty or not, is the caller's then.
  level::Magazine take_word(level::Slot& chosen, HomeClass h) noexcept {
    return magazines().of_word(take(chosen, chosen.words[index(h)]));
  }
  /// False: there is one, or the slot is stopped.
  bool put_word(level::Slot& chosen, HomeClass h, level::Magazine m) noexcept {
    return put(chosen, chosen.words[index(h)], m.word());
  }
  level::Magazine take_previous(level::Slot& chosen, HomeClass h) noexcept {
    return magazines().of_word(take(chosen, chosen.previous[index(h)]));
  }
  bool put_previous(level::Slot& chosen, HomeClass h, level::Magazine m) noexcept {
    return put(chosen, chosen.previous[index(h)], m.word());
  }
  TERRACE_INLINE ChainWord take_large(level::Slot& chosen, unsigned word) noexcept { return take(chosen, chosen.large[word]); }
  TERRACE_INLINE bool put_large(level::Slot& chosen, unsigned word, ChainWord block) noexcept {
    return put(chosen, chosen.large[word], block);
  }

  // grants.cpp: who may hold how much
  /// Doubles the cap as far as the class, the counter's width and the budget allow. The cap that holds now.
  unsigned grow_cap(level::Slot& slot, HomeClass h) noexcept;
  void shrink_cap(level::Slot& slot, HomeClass h) noexcept;
  /// All caps start again from nothing, and their grants go back.
  void release_caps(level::Slot& slot) noexcept;
  level::Budget& budget() noexcept { return budget_; }

  /// What a slot's words of one class hold goes to the slabs.
  void empty_words(level::Slot& slot, HomeClass h) noexcept;
  /// What the words of a slot held, all words in the order of level::words_of(), goes to the slabs, and the caps to nothing.
  void empty(level::Slot& slot, const ChainWord* held) noexcept;

  /// The invariant that does not hold, in words; null when all do. For tests, while no other thread is inside.
  const char* check() noexcept;

 private:
  const Magazines& magazines() noexcept { return slabs_.magazines(); }
  void reclaim_caps(level::Slot& slot, std::uint64_t bytes, unsigned steps) noexcept;
  const char* check(level::Slot& slot, std::uint64_t& caps) noexcept;

  SlabLevel& slabs_;
  Maintenance& maintenance_;
  level::Budget budget_;
};

}  // namespace terrace::heap
