// SPDX-License-Identifier: MIT OR Apache-2.0
// The core level's memory: for each slot and class one word to allocate from and one to free into.
//
// Two words, not one: a pair of malloc and free is then two short dependency chains instead of one long one, and the numbers of
// allocations and frees follow from the counts in the words and from the chains that were moved (docs/adr/0002).
//
// Invariants
//   I1  count(allocate[c]) <= chain::longest; count(free[h]) <= cap[h] <= chain::longest, or the word is `stopped`.
//   I2  every block of a word is in no other word and not in a program's hands; all blocks of a word have one home class.
//   I3  sum over slots and classes of 2 * cap * size <= bytes granted by the budget.
// Who may write: a word, the thread on the slot (by a sequence; under `lock` on the rung without sequences; the owning thread
// on the thread rung), or a thread that has stopped it. A cap, anybody, atomically.
#pragma once

#include "arch/chain.h"
#include "base/types.h"
#include "os/mutex.h"

#include <atomic>

namespace terrace::level {

inline constexpr std::size_t allocate_words = 80;
inline constexpr std::size_t free_words = 256;
inline constexpr int slot_shift = 12;
inline constexpr std::size_t slot_size = std::size_t{1} << slot_shift;

struct alignas(slot_size) Slot {
  ChainWord allocate[allocate_words];
  ChainWord free[free_words];
  std::uint8_t cap[free_words];
  // Slow paths only:
  std::uint8_t recent[free_words];        // the class was refilled or spilled since the budget's hand came by
  std::uint64_t swapped[allocate_words];  // blocks taken out of the word to free into and put into the one to allocate from
  os::Mutex lock;                         // rank: slot. Rung getcpu: guards the words
  std::uint32_t owner;                    // rung thread: number, and whether a thread has it
  Slot* next;                             // rung thread: list of all slots, then of free ones
  std::uint8_t hand;                      // of the clock over caps
  std::uint64_t snapshot;                 // decay: a hash of the words when it last looked
};
static_assert(sizeof(Slot) == slot_size);

inline constexpr int allocate_offset = 0;
inline constexpr int free_offset = static_cast<int>(sizeof(ChainWord) * allocate_words);
inline constexpr int cap_offset = free_offset + static_cast<int>(sizeof(ChainWord) * free_words);
static_assert(offsetof(Slot, free) == free_offset && offsetof(Slot, cap) == cap_offset);

/// Counts `n` blocks that went from the word to free into to the one to allocate from. What it was before.
inline std::uint64_t count_swapped(Slot& slot, std::size_t c, std::uint64_t n) noexcept {
  return __atomic_fetch_add(&slot.swapped[c], n, __ATOMIC_RELAXED);  // relaxed: for statistics, and to grow a cap now and then
}

/// A word that its owner writes by plain stores inside sequences and others read.
inline ChainWord peek(const ChainWord& word) noexcept {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);  // relaxed: a count that is old in the next moment anyway
}

}  // namespace terrace::level
