// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/levels/large_slots.h"

#include "heap/levels/upkeep.h"
#include "os/clock.h"

#include <bit>
#include <cstring>

namespace terrace::heap {
namespace {

using level::Slot;

constexpr unsigned words = level::large_words;
constexpr std::uint64_t large_calls_between_ticks = 64;

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

bool has_grant(const Slot& slot, unsigned word) noexcept {
  return (__atomic_load_n(&slot.large_granted, __ATOMIC_RELAXED) >> word & 1) != 0;  // relaxed: a hint
}

}  // namespace

void* LargeSlots::take(std::size_t size, bool zeroed) noexcept {
  const unsigned word = word_for(size);
  if (word >= words) return nullptr;
  Slot* const slot = core_.current();
  if (slot == nullptr || level::peek(slot->large[word]) == empty_word) return nullptr;
  const Word w = core_.take_large(*slot, word);
  if (w == empty_word) return nullptr;
  void* const p = level::large_of_word(w);
  if (!large_.reuse(p, size)) {
    give_up(w);
    upkeep::keep_bound(maintenance_);
    return nullptr;
  }
  // Counted as Slot::popped is, for statistics.
  const std::uint64_t reused = __atomic_load_n(&slot->large_reused, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&slot->large_reused, reused, __ATOMIC_RELAXED);
  if (reused % large_calls_between_ticks == 0) {
    upkeep::tick(maintenance_);
    upkeep::keep_bound(maintenance_);
  }
  if (zeroed) std::memset(p, 0, size);
  return p;
}

// Whether the slot may keep a block there from now on.
bool LargeSlots::grant(Slot& slot, unsigned word) noexcept {
  const unsigned bit = 1U << word;
  if (!upkeep::may_keep(maintenance_, most_in(word))) return false;
  granted_.add(most_in(word));
  const unsigned before = __atomic_fetch_or(&slot.large_granted, static_cast<std::uint8_t>(bit), __ATOMIC_RELAXED);
  if ((before & bit) != 0) granted_.sub(most_in(word));
  return true;
}

LargeSlots::Kept LargeSlots::keep(void* p) noexcept {
  LargeRecord* const record = large_.keepable(p);
  if (record == nullptr) return Kept::no;
  const unsigned word = word_for(record->requested);
  if (word >= words) return Kept::no;
  Slot* const slot = core_.current();
  if (slot == nullptr || !(has_grant(*slot, word) || grant(*slot, word))) return Kept::no;
  large_.set_kept(*record);
  const Word block = level::word_of_large(p);
  if (core_.put_large(*slot, word, block)) return Kept::yes;
  const Word before = core_.take_large(*slot, word);
  const bool done = core_.put_large(*slot, word, block);
  give_up(before);
  if (!done) give_up(block);
  return Kept::in_place_of_another;
}

void LargeSlots::give_up(Word block) noexcept {
  if (block != empty_word) large_.give_up(level::large_of_word(block), os::coarse_milliseconds());
}

// Of a slot whose words of large blocks were emptied.
void LargeSlots::release_grants(Slot& slot) noexcept {
  granted_.sub(bytes_of(__atomic_exchange_n(&slot.large_granted, std::uint8_t{0}, __ATOMIC_RELAXED)));
}

void LargeSlots::empty(Slot& slot, const Word* held) noexcept {
  for (unsigned word = 0; word < words; ++word) give_up(held[word]);
  release_grants(slot);
}

void LargeSlots::empty_own(Slot& slot) noexcept {
  for (unsigned word = 0; word < words; ++word) give_up(core_.take_large(slot, word));
  release_grants(slot);
}

}  // namespace terrace::heap
