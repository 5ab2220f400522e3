// SPDX-License-Identifier: MIT OR Apache-2.0
// How many rounds a slot may hold of each class, and where room is made when the budget is spent.
//
// The cap of a (slot, class) starts small and doubles whenever a magazine had to be moved, as long as the budget grants it: a
// class that is used once costs a few blocks, one that is used all the time gets magazines that make a transfer rare.
#include "heap/levels/grants.h"

#include "heap/levels/core_level.h"
#include "heap/levels/upkeep.h"
#include "os/clock.h"

namespace terrace::heap {
namespace {

using level::Slot;

// How far the hand moves: a class that has nothing looks further than one that would like more. Faster hands take from classes
// that are in use, which then come back for it.
constexpr unsigned hand_steps_for_first = 16, hand_steps_for_more = 1;

constexpr std::uint64_t refusals_at_once = 256;  // by weight, of one slot

constexpr std::uint64_t cost_of(unsigned caps, std::size_t size) noexcept { return std::uint64_t{2} * caps * size; }

}  // namespace

// Slots that are refused all the time share no line for it. relaxed: of two threads' refusals one may be lost.
void CoreLevel::count_refusal(Slot& slot, std::uint64_t weight) noexcept {
  const std::uint64_t sum = __atomic_load_n(&slot.refusals, __ATOMIC_RELAXED) + weight;
  const bool told = sum >= refusals_at_once;
  __atomic_store_n(&slot.refusals, told ? 0 : sum, __ATOMIC_RELAXED);
  if (told && budget_.refused(sum)) budget_.look_for_burst(os::coarse_milliseconds());
}

unsigned CoreLevel::grow_cap(Slot& slot, HomeClass h) noexcept {
  const SizeClass c = class_of(h);
  const std::size_t size = class_size(c);
  auto have = static_cast<std::uint8_t>(load_cap(slot, h));
  mark_recent(slot, h);
  const unsigned want = have == 0 ? first_cap(c) : min_of<unsigned>(2U * have, max_cap(c));
  if (want <= have) return have;
  const std::uint64_t cost = cost_of(want - have, size);
  if (!budget_.reserve(cost)) {
    count_refusal(slot, weight_of_refusal(2U * have, c));
    upkeep::update_limits(maintenance_);
    // relaxed: of two that would like to grow one may be forgotten.
    __atomic_store_n(&slot.refused, cost << 8 | (have == 0 ? hand_steps_for_first : hand_steps_for_more), __ATOMIC_RELAXED);
    if (have == 0 && size <= bulky) {
      budget_.force_reserve(cost);
    } else if (!budget_.reserve(cost)) {
      return have;
    }
  }
  if (!__atomic_compare_exchange_n(&cap(slot, h), &have, static_cast<std::uint8_t>(want), false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    budget_.release(cost);  // somebody else grew or shrank it
    return have;
  }
  return want;
}

// Less memory is in use than when the caps were granted: those that are used shrink, half at a time. (Those that are not are
// found by the hand, or drained when the slot is idle.)
void CoreLevel::shrink_cap(Slot& slot, HomeClass h) noexcept {
  auto have = static_cast<std::uint8_t>(load_cap(slot, h));
  if (have < 2) return;
  const auto less = static_cast<std::uint8_t>(have / 2);
  if (__atomic_compare_exchange_n(&cap(slot, h), &have, less, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    budget_.release(cost_of(have - less, class_size(class_of(h))));
}

// Somebody wanted to grow and the budget is spent: what has not been used lately goes. Other slots look after themselves, or
// are drained when they are idle. A clock hand over the slot's caps, until there is as much as was wanted: those that were not
// refilled or spilled since it came by last go back to nothing, and what their words hold to the slabs.
void CoreLevel::make_room(Slot& slot) noexcept {
  const std::uint64_t refused = __atomic_exchange_n(&slot.refused, 0, __ATOMIC_RELAXED), bytes = refused >> 8;
  const auto steps = static_cast<unsigned>(refused & 0xff);
  for (unsigned i = 0; i < steps && !budget_.has(bytes); ++i) {
    const std::uint8_t at = __atomic_fetch_add(&slot.hand, std::uint8_t{1}, __ATOMIC_RELAXED);
    if (at >= level::slot_words) continue;  // the hand turns at 256, and behind the caps are words
    const HomeClass h{at};
    auto have = static_cast<std::uint8_t>(load_cap(slot, h));
    if (have == 0) continue;
    if (__atomic_exchange_n(&recent(slot, h), std::uint8_t{0}, __ATOMIC_RELAXED) != 0) continue;
    if (__atomic_compare_exchange_n(&cap(slot, h), &have, std::uint8_t{0}, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      budget_.release(cost_of(have, class_size(class_of(h))));
      empty_words(slot, h);
    }
  }
}

void CoreLevel::release_cap(std::uint8_t& cap, HomeClass h) noexcept {
  if (__atomic_load_n(&cap, __ATOMIC_RELAXED) == 0) return;
  const unsigned had = __atomic_exchange_n(&cap, std::uint8_t{0}, __ATOMIC_RELAXED);
  budget_.release(cost_of(had, class_size(class_of(h))));
}

void CoreLevel::release_caps(Slot& slot) noexcept {
  for (std::size_t h = 0; h < level::slot_words; ++h) release_cap(slot.cap[h], home_at(h));
}

void CoreLevel::release_caps(level::ObjectWords& words, unsigned chunk) noexcept {
  for (unsigned i = 0; i < level::objects_per_chunk; ++i)
    release_cap(words.cap[i], ObjectClasses::home(chunk * level::objects_per_chunk + i));
}

}  // namespace terrace::heap
