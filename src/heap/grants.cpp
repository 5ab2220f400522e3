// SPDX-License-Identifier: MIT OR Apache-2.0
// Who may hold how much: the caps of slots, the bytes of depots, and where room is made when a budget is spent.
//
// The cap of a (slot, class) starts small and doubles whenever a magazine had to be moved, as long as the budget grants it: a
// class that is used once costs a few blocks, one that is used all the time gets magazines that make a transfer rare.
#include "heap/grants.h"

#include "heap/heap.h"
#include "heap/transfer_sizes.h"
#include "os/clock.h"

namespace terrace::heap {
namespace {

using level::Slot;

// How far the hand moves: a class that has nothing looks further than one that would like more. Faster hands take from classes
// that are in use, which then come back for it.
constexpr unsigned hand_steps_for_first = 16, hand_steps_for_more = 1, hand_steps_in_depots = 64;
constexpr std::uint64_t refusals_between_reclaims = 16;  // of the depots: a walk over memory that is cold

// A class that works with full magazines and is refused does so all the time; one that is used now and then never gets there.
constexpr std::uint64_t weight_of_refusal(unsigned blocks, SizeClass c) noexcept {
  constexpr std::uint64_t of_full_magazine = 256;
  return blocks >= max_cap(c) ? of_full_magazine : 1;
}

constexpr std::uint64_t cost_of(unsigned caps, std::size_t size) noexcept { return std::uint64_t{2} * caps * size; }

}  // namespace

// Doubles the cap as far as the class, the counter's width and the budget allow. The cap that holds now.
unsigned Heap::grow_cap(Slot& slot, HomeClass h) noexcept {
  const SizeClass c = class_of(h);
  const std::size_t size = class_size(c);
  std::uint8_t have = load_cap(slot, h);
  mark_recent(slot, h);
  const unsigned want = have == 0 ? first_cap(c) : min_of<unsigned>(2U * have, max_cap(c));
  if (want <= have) return have;
  const std::uint64_t cost = cost_of(want - have, size);
  if (!budget_.reserve(cost)) {
    if (budget_.refused(weight_of_refusal(2U * have, c))) budget_.look_for_rush(os::coarse_milliseconds());
    update_limits();
    reclaim_caps(slot, cost, have == 0 ? hand_steps_for_first : hand_steps_for_more);
    if (have == 0 && size <= bulky) {
      budget_.reserve_anyway(cost);
    } else if (!budget_.reserve(cost)) {
      return have;
    }
  }
  if (!__atomic_compare_exchange_n(&slot.cap[index(h)], &have, static_cast<std::uint8_t>(want), false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    budget_.release(cost);  // somebody else grew or shrank it
    return have;
  }
  return want;
}

// Less memory is in use than when the caps were granted: those that are used shrink, half at a time. (Those that are not are
// found by the hand, or drained when the slot is idle.)
void Heap::shrink_cap(Slot& slot, HomeClass h) noexcept {
  std::uint8_t have = load_cap(slot, h);
  if (have < 2) return;
  const auto less = static_cast<std::uint8_t>(have / 2);
  if (__atomic_compare_exchange_n(&slot.cap[index(h)], &have, less, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    budget_.release(cost_of(have - less, class_size(class_of(h))));
}

// Somebody wants to grow and the budget is spent: what has not been used lately goes. Other slots look after themselves, or are
// drained when they are idle. A clock hand over the slot's caps, until there are `bytes`: those that were not refilled or
// spilled since it came by last go back to nothing, and what their words hold to the slabs.
void Heap::reclaim_caps(Slot& slot, std::uint64_t bytes, unsigned steps) noexcept {
  for (unsigned i = 0; i < steps && !budget_.has(bytes); ++i) {
    const std::uint8_t at = __atomic_fetch_add(&slot.hand, std::uint8_t{1}, __ATOMIC_RELAXED);
    if (at >= level::slot_words) continue;  // the hand turns at 256, and behind the caps are words
    const HomeClass h{at};
    std::uint8_t have = load_cap(slot, h);
    if (have == 0) continue;
    if (__atomic_exchange_n(&slot.recent[index(h)], std::uint8_t{0}, __ATOMIC_RELAXED) != 0) continue;
    if (__atomic_compare_exchange_n(&slot.cap[index(h)], &have, std::uint8_t{0}, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      budget_.release(cost_of(have, class_size(class_of(h))));
      empty_words(slot, h);
    }
  }
}

void Heap::empty_words(Slot& slot, HomeClass h) noexcept {
  empty(core_.take_word(slot, h));
  empty(core_.take_previous(slot, h));
}

// As for caps: beyond the budget now and then somebody makes room, by what nobody wanted lately, and by what the class itself
// has held for longest.
bool Heap::reserve_in_depots(HomeClass h, unsigned blocks) noexcept {
  const std::size_t size = class_size(class_of(h));
  if (depot_budget_.reserve(blocks * size)) return true;
  if (depot_budget_.refused(weight_of_refusal(blocks, class_of(h)))) depot_budget_.look_for_rush(os::coarse_milliseconds());
  if (depot_refusals_.add() % refusals_between_reclaims == 0 && maintenance_.try_lock()) {
    update_limits();
    reclaim_depots();
    give_up_oldest(depots_.at(place()), index(h));
    maintenance_.unlock();
  }
  return depot_budget_.reserve(blocks * size);
}

// A clock hand over the depots: a stack that nobody has wanted since it came by is given up.
void Heap::reclaim_depots() noexcept {
  const unsigned total = depots_.count() * static_cast<unsigned>(level::depot_keys);
  for (unsigned i = 0; i < hand_steps_in_depots; ++i) {
    const unsigned at = depot_hand_++ % total;
    level::Shard& shard = depots_.at(at / level::depot_keys);
    const std::size_t key = at % level::depot_keys;
    if (!shard.has(key) || shard.was_recent(key)) continue;
    while (give_up_oldest(shard, key)) {
    }
  }
}

// The oldest magazine of a stack goes to the slabs. False: there was none.
bool Heap::give_up_oldest(level::Shard& shard, std::size_t key) noexcept {
  const level::Magazine m = shard.pop_oldest(key);
  if (!m) return false;
  if (m.count() != 0) depot_budget_.release(std::uint64_t{m.count()} * class_size(class_of(home_at(key))));
  empty(m);
  return true;
}

}  // namespace terrace::heap
