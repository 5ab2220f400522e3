// SPDX-License-Identifier: MIT OR Apache-2.0
// The core level of blocks: slots whose words name magazines, on every rung, and the rounds that each may hold. Slow paths
// only; the fast paths of the rungs with sequences are in fast_path.h.
#pragma once

#include "base/described.h"
#include "heap/levels/slab_level.h"
#include "heap/levels/upkeep.h"
#include "level/budget.h"
#include "level/per_slot.h"
#include "level/slot.h"

namespace terrace::heap {

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
  /// False: more slots than homes, so slots share homes. No slot then has home 0; malloc pops from home 0's words.
  bool homes_are_slots() const noexcept { return slot_count() <= max_homes || !has_sequences(); }
  /// The word of the slot that malloc pops from. It is the one that blocks of the slot's home are pushed onto; where slots
  /// share homes, the fast path can not compute that one, and uses home 0's, which no slot has.
  HomeClass own_word(const level::Slot& slot, SizeClass c) const noexcept {
    return home_class(c, homes_are_slots() ? home_of(slot) : 0);
  }

  /// Words of a chunk of object caches, for all slots. False: there is no memory.
  bool open_objects(unsigned chunk) noexcept;
  /// Of a slot, where `h` is a class of object caches whose chunk is open. Null: there is no memory for a thread's own.
  level::ObjectWords* object_words(level::Slot& slot, HomeClass h) noexcept {
    return object_words(slot, ObjectClasses::chunk(h));
  }
  level::ObjectWords* object_words(level::Slot& slot, unsigned chunk) noexcept {
    if (rung() != percpu::Rung::thread) return objects_[chunk] + number_of(slot);
    // By plain stores: only this thread writes them.
    if (slot.of_objects != nullptr && slot.of_objects[chunk] != nullptr) [[likely]]
      return slot.of_objects[chunk];
    return make_object_words(slot, chunk);
  }
  /// Where the sequences find the words of a class, as number word_of_objects of an array. Meaningless where each thread has a
  /// slot.
  std::byte* object_base(HomeClass h) const noexcept;
  /// As current(), for operations on that class.
  level::Slot* current_for(HomeClass h) noexcept {
    level::Slot* const slot = current();
    return slot != nullptr && is_object(h) && object_words(*slot, h) == nullptr ? nullptr : slot;
  }
  /// What a slot has of one class: of blocks in the slot itself, of objects in a chunk beside it.
  struct OfClass {
    std::uint8_t &cap, &recent;
    Word &word, &previous;
    std::uint64_t& popped;
    std::size_t stride;  // to the same of the next slot
  };
  OfClass of_class(level::Slot& slot, HomeClass h) noexcept {
    if (is_object(h)) {
      level::ObjectWords& o = *object_words(slot, h);
      const unsigned i = ObjectClasses::within(h);
      return {o.cap[i], o.recent[i], o.words[i], o.previous[i], o.popped[i], sizeof o};
    }
    const std::size_t i = index(h);
    return {slot.cap[i], slot.recent[i], slot.words[i], slot.previous[i], slot.popped[i], sizeof slot};
  }
  std::uint8_t& cap(level::Slot& slot, HomeClass h) noexcept { return of_class(slot, h).cap; }
  std::uint8_t& recent(level::Slot& slot, HomeClass h) noexcept { return of_class(slot, h).recent; }
  /// Of objects, all slots' together.
  static SharedCounter& refills(level::Slot& slot, SizeClass c) noexcept {
    return is_object(c) ? object_classes[c].refills : slot.refills[index(c)];
  }
  static SharedCounter& spills(level::Slot& slot, SizeClass c) noexcept {
    return is_object(c) ? object_classes[c].spills : slot.spills[index(c)];
  }
  unsigned load_cap(level::Slot& slot, HomeClass h) noexcept {
    return __atomic_load_n(&cap(slot, h), __ATOMIC_RELAXED);  // relaxed: a hint of how much to hold
  }
  void mark_recent(level::Slot& slot, HomeClass h) noexcept {
    __atomic_store_n(&recent(slot, h), std::uint8_t{1}, __ATOMIC_RELAXED);
  }

  /// Pops a block for the program, and counts it. Null: there is none, or the allocation is due to be sampled.
  void* pop(level::Slot& chosen, HomeClass h) noexcept;
  arch::Sequence push(level::Slot& chosen, HomeClass h, void* block) noexcept;
  /// Gives the loaded magazine, perhaps empty, to the caller.
  level::Magazine take_word(level::Slot& chosen, HomeClass h) noexcept {
    const OfClass c = of_class(chosen, h);
    return magazines().of_word(take(chosen, place_of(chosen, c.word, c.stride)));
  }
  /// False: there is one, or the slot is stopped.
  bool put_word(level::Slot& chosen, HomeClass h, level::Magazine m) noexcept {
    const OfClass c = of_class(chosen, h);
    return put(chosen, place_of(chosen, c.word, c.stride), m.word());
  }
  level::Magazine take_previous(level::Slot& chosen, HomeClass h) noexcept {
    const OfClass c = of_class(chosen, h);
    return magazines().of_word(take(chosen, place_of(chosen, c.previous, c.stride)));
  }
  bool put_previous(level::Slot& chosen, HomeClass h, level::Magazine m) noexcept {
    const OfClass c = of_class(chosen, h);
    return put(chosen, place_of(chosen, c.previous, c.stride), m.word());
  }
  TERRACE_INLINE Word take_large(level::Slot& chosen, unsigned word) noexcept { return take(chosen, chosen.large[word]); }
  TERRACE_INLINE bool put_large(level::Slot& chosen, unsigned word, Word block) noexcept {
    return put(chosen, chosen.large[word], block);
  }

  // grants.cpp: who may hold how much
  /// Doubles the cap as far as the class, the counter's width and the budget allow. The cap that holds now.
  unsigned grow_cap(level::Slot& slot, HomeClass h) noexcept;
  void shrink_cap(level::Slot& slot, HomeClass h) noexcept;
  /// A cap of the slot could not grow: the refused thread, or the next one, makes room at the end of its operation, since the
  /// place of refusal is deep in the stack.
  static bool wants_room(const level::Slot& slot) noexcept {
    return __atomic_load_n(&slot.refused, __ATOMIC_RELAXED) != 0;  // relaxed: a hint
  }
  void make_room(level::Slot& slot) noexcept;
  /// Resets all caps to 0 and returns their grants.
  void release_caps(level::Slot& slot) noexcept;
  void release_caps(level::ObjectWords& words, unsigned chunk) noexcept;
  level::Budget& budget() noexcept { return budget_; }

  /// Moves the content of a slot's words of one class to the slabs.
  void empty_words(level::Slot& slot, HomeClass h) noexcept;
  /// Moves a word's former content to the slabs.
  void empty(Word held) noexcept;
  // Of one class of objects, both words:
  void take_object_words(level::Slot& slot, HomeClass h, Word* held) noexcept;
  /// The same for any slot, when the class has no user: the slot need not be stopped.
  void take_abandoned_words(level::Slot& slot, HomeClass h, Word* held) noexcept;
  void empty_object_words(level::Slot& slot, HomeClass h, const Word* held) noexcept;
  void empty_object_words(const Word* held) noexcept;
  /// Calls body(words, chunk) for each chunk that the slot has words of.
  template <class Body>
  void for_each_chunk(level::Slot& slot, Body body) noexcept {
    for (unsigned chunk = 0, end = object_classes.chunks(); chunk < end; ++chunk) {
      if (level::ObjectWords* const words = known_words(slot, chunk)) body(*words, chunk);
    }
  }

  /// The invariant that does not hold, in words; null when all do. For tests, while no other thread is inside.
  const char* check() noexcept;

 private:
  friend struct introspect::Layout;
  const Magazines& magazines() noexcept { return slabs_.magazines(); }
  level::ObjectWords* make_object_words(level::Slot& slot, unsigned chunk) noexcept;
  /// Without making any.
  level::ObjectWords* known_words(level::Slot& slot, unsigned chunk) const noexcept;
  void* pop_by_sequence(HomeClass h) noexcept;
  arch::Sequence push_by_sequence(HomeClass h, void* block) noexcept;
  void count_refusal(level::Slot& slot, std::uint64_t weight) noexcept;
  void release_cap(std::uint8_t& cap, HomeClass h) noexcept;
  const char* check_word(Word w, HomeClass h) noexcept;
  const char* check(level::Slot& slot, std::uint64_t& caps) noexcept;

  SlabLevel& slabs_;
  Maintenance& maintenance_;
  level::Budget budget_;
  std::array<level::ObjectWords*, level::most_object_chunks> objects_{};  // by chunk: slot 0's, the others' behind
};

}  // namespace terrace::heap
