// SPDX-License-Identifier: MIT OR Apache-2.0
// The core level's memory: for each slot and home class one word, which names the loaded magazine: malloc pops from it and free
// pushes onto it, last in, first out, so that a block that was just freed, and is warm, is the next one handed out
// (docs/adr/0002). Beside it is the previous magazine, full or empty (Bonwick), which only slow paths use. So a program must
// allocate or free a whole magazine of blocks between two requests to the next level, whatever the word's count is.
//
// Invariants
//   I1  words[h] and previous[h] are empty, stopped, or name a magazine of the class's kind that is as M1 says.
//   I2  every block of a word is in no other word and not in a program's hands; all blocks of a word have one home class.
//   I3  sum over slots and classes of 2 * cap * size <= bytes granted by the budget.
//   I4  a word of `large` is empty, stopped, or names a large block that is marked as kept; nothing is written to the block.
// I1 and I2 are asserted where a word gets a magazine (level/per_slot.h, heap/levels/block_levels.cpp);
// Heap::check_invariants() looks at all of them. Who may write a word: see level/per_slot.h. A cap, anybody, atomically.
#pragma once

#include "arch/word.h"
#include "base/counter.h"
#include "base/types.h"
#include "level/magazine.h"
#include "level/thread_slots.h"

#include <span>

namespace terrace::level {

inline constexpr std::size_t slot_words = 248;
inline constexpr std::size_t words_of_nothing = magazine_kinds + 1;  // values of the page map that no block has
inline constexpr unsigned large_words = 4;
inline constexpr std::size_t slot_classes = 97;  // size classes, of which a word's home class is one
inline constexpr int slot_shift = 13;
inline constexpr std::size_t slot_size = std::size_t{1} << slot_shift;

/// The same for object caches, of which a program may create thousands: a chunk of this many is mapped for all slots when its
/// first cache is created.
inline constexpr unsigned objects_per_chunk = 64;
inline constexpr unsigned most_object_chunks = 256;
inline constexpr int object_words_shift = 11;
inline constexpr std::size_t object_words_size = std::size_t{1} << object_words_shift;

struct alignas(object_words_size) ObjectWords {
  std::uint8_t cap[objects_per_chunk];
  Word words[objects_per_chunk];
  Word previous[objects_per_chunk];
  std::uint8_t recent[objects_per_chunk];
  std::uint64_t popped[objects_per_chunk];  // as Slot::popped
  std::uint64_t snapshot;
  std::uint32_t armed_by[objects_per_chunk];  // a hash of profile::Profiler::word() when `popped` of the class was armed
};
static_assert(sizeof(ObjectWords) == object_words_size);
inline constexpr int object_words_offset = offsetof(ObjectWords, words), object_popped_offset = offsetof(ObjectWords, popped);
static_assert(offsetof(ObjectWords, previous) == offsetof(ObjectWords, words) + sizeof(ObjectWords::words));

struct alignas(slot_size / 2) Slot {  // pages of its own, and of no more than the smallest page's alignment
  std::uint8_t cap[slot_words];
  Word words[slot_words + words_of_nothing];  // the last ones never hold anything: see heap/classes/page_values.h
  Word previous[slot_words];                  // slow paths only, as the next two
  Word large[large_words];                    // a block each, see heap/levels/large_slots.h
  std::uint8_t recent[slot_words];            // the class was refilled or spilled since the last pass of the clock hand
  /// Blocks popped. The popping thread counts with one plain instruction before the commit. Approximate: an attempt that is
  /// aborted in between counts as well.
  /// With the heap profiler a count begins below 0, and the allocation that finds it at 0 is sampled; what it runs through is
  /// kept in Profiler::armed(), or ObjectClass::armed. Without, no count comes to 0.
  std::uint64_t popped[slot_words];
  // Slow paths only:
  SharedCounter refills[slot_classes], spills[slot_classes];  // here, since one number for all slots costs more than the refill
  SlotOfThread<Slot> of_thread;                               // rung thread
  ObjectWords** of_objects;                                   // rung thread: by chunk, null until the thread uses one
  std::uint64_t snapshot;                                     // decay: a hash of the words when it last looked,
  std::uint64_t large_snapshot;                               // of the words of large blocks
  std::uint64_t large_reused;                                 // blocks taken from those; counted as `popped` is
  std::uint64_t armed_by;                                     // profile::Profiler::word() when `popped` was armed
  std::uint64_t refused;                                      // bytes to make room for << 8, and steps of the hand; 0: none
  std::uint64_t refusals;                                     // by weight, that the budget does not know of yet
  std::uint8_t large_granted;                                 // a bit for each word that may hold a block; atomically
  std::uint8_t hand;                                          // of the clock over caps
};
static_assert(sizeof(Slot) == slot_size);

inline constexpr std::size_t all_words = 2 * slot_words + words_of_nothing + large_words;
inline constexpr int cap_offset = 0;  // small: there are processors whose instructions have room for 12 bits
inline constexpr int words_offset = slot_words;
inline constexpr int popped_offset = words_offset + static_cast<int>(sizeof(Word) * all_words + slot_words);
// A load of a word would wait for the store to a number a multiple of 4 KiB away: processors compare the low 12 bits first.
static_assert((popped_offset - words_offset) % 4096 != 0);
static_assert(offsetof(Slot, cap) == cap_offset && offsetof(Slot, words) == words_offset &&
              offsetof(Slot, popped) == popped_offset);

/// What a word of `large` holds: the address << 8.
inline Word word_of_large(const void* block) noexcept {
  return static_cast<Word>(reinterpret_cast<std::uintptr_t>(block)) << 8;
}
/// Requires names_something(w).
inline void* large_of_word(Word w) noexcept {
  return reinterpret_cast<void*>(w >> 8);  // NOLINT(performance-no-int-to-ptr): what the word is for
}

/// Among all words of a slot.
inline constexpr std::size_t first_previous = slot_words + words_of_nothing, first_large = first_previous + slot_words;
/// All words of a slot, then all previous ones, then the words of large blocks.
inline std::span<Word> words_of(Slot& slot) noexcept {
  static_assert(offsetof(Slot, previous) - offsetof(Slot, words) == sizeof(Word) * first_previous);
  static_assert(offsetof(Slot, large) - offsetof(Slot, words) == sizeof(Word) * first_large);
  return {slot.words, all_words};
}

/// All words of a chunk, then all previous ones.
inline constexpr std::size_t words_per_chunk = 2 * objects_per_chunk;
inline std::span<Word> words_of(ObjectWords& chunk) noexcept { return {chunk.words, words_per_chunk}; }

}  // namespace terrace::level
