// SPDX-License-Identifier: MIT OR Apache-2.0
// Large blocks that were just freed, kept for the next request: a program that takes and gives a buffer in turn gets the same
// one, without a lock, a list or a fault. A slot has a word for each doubling of the size up to 4 MiB, and keeps one block in
// each, the one that was freed last; what it displaces becomes a free span, as every block that is kept does when it does not
// fit.
//
// A word may hold a block only when the bytes that it may reach at most are granted (Slot::large_granted). Grants count in the
// surplus in full, whether there is a block or not, so that keeping one and taking it need not look at the bound. A grant is
// not given when that would bring the surplus beyond half of the bound. (A thread that is moved between the look at its slot
// and the store leaves its block where perhaps nothing is granted; it goes with that slot's next round.)
#include "heap/heap.h"
#include "os/clock.h"

#include <bit>
#include <cstring>

namespace terrace::heap {
namespace {

using level::Slot;

constexpr unsigned words = level::large_words;
constexpr std::uint64_t calls_between_ticks = 64;

constexpr std::size_t most_in(unsigned word) noexcept { return (2 * SizeRule::largest) << word; }

// `words` or more: the block is too large to be kept.
constexpr unsigned word_for(std::size_t size) noexcept {
  return static_cast<unsigned>(std::bit_width((size - 1) / SizeRule::largest)) - 1;
}
static_assert(word_for(SizeRule::largest + 1) == 0 && word_for(most_in(0)) == 0 && word_for(most_in(0) + 1) == 1);
static_assert(word_for(most_in(words - 1)) == words - 1 && word_for(SizeRule::largest) >= words);

std::uint64_t bytes_of(unsigned mask) noexcept {
  std::uint64_t sum = 0;
  for (unsigned word = 0; word < words; ++word) sum += (mask >> word & 1) != 0 ? most_in(word) : 0;
  return sum;
}

bool granted(const Slot& slot, unsigned word) noexcept {
  return (__atomic_load_n(&slot.large_granted, __ATOMIC_RELAXED) >> word & 1) != 0;  // relaxed: a hint
}

}  // namespace

void* Heap::take_kept(std::size_t size, bool zeroed) noexcept {
  const unsigned word = word_for(size);
  if (word >= words) return nullptr;
  Slot* const slot = core_.current();
  if (slot == nullptr || level::peek(slot->large[word]) == chain::empty) return nullptr;
  const ChainWord w = core_.take_large(*slot, word);
  if (w == chain::empty) return nullptr;
  void* const p = chain::first(w);
  if (!large_.reuse(p, size)) {
    give_up_kept(w);
    keep_bound();
    return nullptr;
  }
  // Counted as Slot::popped is, for statistics.
  const std::uint64_t reused = __atomic_load_n(&slot->large_reused, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&slot->large_reused, reused, __ATOMIC_RELAXED);
  if (reused % calls_between_ticks == 0) tick();
  if (zeroed) std::memset(p, 0, size);
  return p;
}

// Whether the slot may keep a block there from now on.
bool Heap::grant(Slot& slot, unsigned word) noexcept {
  const unsigned bit = 1U << word;
  if (surplus() + most_in(word) > surplus_bound() / 2) return false;
  if (options_.budget != 0 && levels_granted() + most_in(word) > options_.budget) return false;
  large_granted_.add(most_in(word));
  const unsigned before = __atomic_fetch_or(&slot.large_granted, static_cast<std::uint8_t>(bit), __ATOMIC_RELAXED);
  if ((before & bit) != 0) large_granted_.sub(most_in(word));
  return true;
}

// False: the block is the caller's as before.
bool Heap::keep(void* p) noexcept {
  LargeRecord* const record = large_.keepable(p);
  if (record == nullptr) return false;
  const unsigned word = word_for(record->requested);
  if (word >= words) return false;
  Slot* const slot = core_.current();
  if (slot == nullptr || !(granted(*slot, word) || grant(*slot, word))) return false;
  large_.set_kept(*record);
  const ChainWord block = chain::make(p, 1);
  if (core_.put_large(*slot, word, block)) return true;
  const ChainWord before = core_.take_large(*slot, word);
  const bool done = core_.put_large(*slot, word, block);
  give_up_kept(before);
  if (!done) give_up_kept(block);
  tick();
  keep_bound();
  return true;
}

void Heap::give_up_kept(ChainWord block) noexcept {
  if (block != chain::empty) large_.give_up(chain::first(block), os::coarse_milliseconds());
}

// Of a slot whose words of large blocks were emptied.
void Heap::release_large_grants(Slot& slot) noexcept {
  large_granted_.sub(bytes_of(__atomic_exchange_n(&slot.large_granted, std::uint8_t{0}, __ATOMIC_RELAXED)));
}

}  // namespace terrace::heap
