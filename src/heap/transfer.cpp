// SPDX-License-Identifier: MIT OR Apache-2.0
// How chains move between the levels: refill when a word is empty, spill when it is full.
//
//   refill   own reserve -> own processor's depot, then the others' -> slabs -> another home's depot or slab, one block
//   spill    own word -> own reserve, and what was there -> own processor's depot -> slabs
//
// The cap of a (slot, class) starts small and doubles whenever a chain had to be moved, as long as the budget grants it: a
// class that is used once costs a few blocks, one that is used all the time gets chains that make a transfer rare.
#include "base/assert.h"
#include "base/report.h"
#include "heap/heap.h"
#include "os/clock.h"
#include "os/rseq_area.h"

namespace terrace::heap {
namespace {

using level::peek;
using level::Slot;

constexpr std::size_t largest_chain_bytes = 16 * kib;   // a cap beyond this is not worth its memory,
constexpr unsigned batch_of_interest = 32;              // but programs work in batches of about this many,
constexpr std::size_t largest_batch_bytes = 256 * kib;  // as far as that is not too large
constexpr std::size_t bulky = 4 * kib;                  // blocks above this get what the budget has, and may get nothing
constexpr unsigned smallest_chain(std::size_t size) noexcept { return size > kib ? 1 : 2; }
constexpr std::uint64_t calls_between_ticks = 32;  // of refills or spills of one class
constexpr std::uint64_t calls_between_looks = 8;   // of spills of one class: how much is in use by now?
// How far the hand moves: a class that has nothing looks further than one that would like more. Faster hands take from classes
// that are in use, which then come back for it.
constexpr unsigned hand_steps_for_first = 16, hand_steps_for_more = 1, hand_steps_in_depots = 64;
constexpr std::uint64_t refusals_between_reclaims = 16;  // of the depots: a walk over memory that is cold
constexpr std::size_t first_chain_bytes = 512;
constexpr unsigned first_cap_at_most = 8;

constexpr unsigned max_cap(std::size_t size) noexcept {
  const std::size_t by_bytes = largest_chain_bytes / size;
  const std::size_t for_batches = min_of<std::size_t>(batch_of_interest, largest_batch_bytes / size);
  return static_cast<unsigned>(
      min_of<std::size_t>(max_of<std::size_t>(max_of(by_bytes, for_batches), smallest_chain(size)), chain::longest));
}

// A class that works with full chains and is refused does so all the time; one that is used now and then never gets there.
constexpr std::uint64_t weight_of_refusal(unsigned blocks, std::size_t size) noexcept {
  constexpr std::uint64_t of_full_chain = 256;
  return blocks >= max_cap(size) ? of_full_chain : 1;
}

constexpr unsigned first_cap(std::size_t size) noexcept {
  return static_cast<unsigned>(
      min_of<std::size_t>(max_of<std::size_t>(first_chain_bytes / size, smallest_chain(size)), first_cap_at_most));
}

constexpr std::uint64_t cost_of(unsigned caps, std::size_t size) noexcept { return std::uint64_t{2} * caps * size; }

std::uint8_t load_cap(const Slot& slot, HomeClass h) noexcept {
  return __atomic_load_n(&slot.cap[index(h)], __ATOMIC_RELAXED);  // relaxed: a hint of how much to hold
}

void mark_recent(Slot& slot, HomeClass h) noexcept {
  __atomic_store_n(&slot.recent[index(h)], std::uint8_t{1}, __ATOMIC_RELAXED);
}

}  // namespace

unsigned Heap::processor() const noexcept {
  if (depots_.processors() == 1) return 0;
  const int cpu = cpu_id_offset_ != 0 ? arch::load_slot(cpu_id_offset_) : os::current_cpu();
  return cpu < 0 ? 0 : index(topology_.llc_of(CpuId{static_cast<std::uint32_t>(cpu)})) % depots_.processors();
}

// Doubles the cap as far as the class, the counter's width and the budget allow. The cap that holds now.
unsigned Heap::grow_cap(Slot& slot, HomeClass h) noexcept {
  const std::size_t size = class_size(class_of(h));
  std::uint8_t have = load_cap(slot, h);
  mark_recent(slot, h);
  const unsigned want = have == 0 ? first_cap(size) : min_of<unsigned>(2U * have, max_cap(size));
  if (want <= have) return have;
  const std::uint64_t cost = cost_of(want - have, size);
  if (!budget_.reserve(cost)) {
    if (budget_.refused(weight_of_refusal(2U * have, size))) budget_.look_for_rush(os::coarse_milliseconds());
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
  for (const ChainWord w : {core_.take_word(slot, h), core_.take_reserve(slot, h)}) {
    slabs_.put_back(w);
  }
}

// As for caps: beyond the budget now and then somebody makes room, by what nobody wanted lately, and by what the class itself
// has held for longest.
bool Heap::reserve_in_depots(HomeClass h, unsigned blocks) noexcept {
  const std::size_t size = class_size(class_of(h));
  if (depot_budget_.reserve(blocks * size)) return true;
  if (depot_budget_.refused(weight_of_refusal(blocks, size))) depot_budget_.look_for_rush(os::coarse_milliseconds());
  if (depot_refusals_.add() % refusals_between_reclaims == 0 && maintenance_.try_lock()) {
    update_limits();
    reclaim_depots();
    give_up_oldest(depots_.at(place()), h);
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
    while (give_up_oldest(shard, home_at(key))) {
    }
  }
}

// The oldest chain of a stack goes to the slabs. False: there was none.
bool Heap::give_up_oldest(level::Shard& shard, HomeClass h) noexcept {
  const ChainWord w = shard.pop_oldest(index(h));
  if (w == chain::empty) return false;
  depot_budget_.release(std::uint64_t{chain::count(w)} * class_size(class_of(h)));
  slabs_.put_back(w);
  return true;
}

// Where the caller's chains go, and come from. Past the core level it is anybody's shard.
level::Place Heap::place() noexcept {
  const Slot* const slot = core_.current();
  const std::size_t number = slot == nullptr ? 0 : core_.number_of(*slot);
  return {.processor = processor(), .shard = static_cast<unsigned>(number % depots_.shards())};
}

ChainWord Heap::fetch_chain(HomeClass h) noexcept {
  const level::Taken taken = depots_.take(place(), index(h));
  const ChainWord w = taken.chain;
  if (w == chain::empty) return w;
  depot_budget_.release(std::uint64_t{chain::count(w)} * class_size(class_of(h)));
  if (taken.foreign) transfers_[index(class_of(h))].foreign.add(chain::count(w));
  return w;
}

void Heap::store_chain(ChainWord w) noexcept {
  const HomeClass h = home_of_chain(w);
  const unsigned n = chain::count(w);
  if (reserve_in_depots(h, n)) {
    if (depots_.put(place(), index(h), w)) return;
    depot_budget_.release(std::uint64_t{n} * class_size(class_of(h)));
  }
  slabs_.put_back(w);
}

// When there is no new slab: a block that waits for another home, in a depot or a slab. It is foreign here and goes home when
// it is freed. What is left of its chain does so at once: a word holds blocks of one home class, by which the slabs take its
// chain.
void* Heap::steal_block(SizeClass c) noexcept {
  if (!is_subline(c)) return nullptr;
  for (std::size_t home = 0; home < max_homes; ++home) {
    ChainWord w = fetch_chain(home_class(c, home));
    if (w == chain::empty) w = slabs_.cut_from_partial(home_class(c, home));
    if (w == chain::empty) continue;
    transfers_[index(c)].foreign.add();
    ChainWord rest = chain::empty;
    void* const block = hand_out_first(w, rest);
    if (rest != chain::empty) store_chain(rest);
    return block;
  }
  return nullptr;
}

// The first block, ready for the program; `rest` is what remains.
void* Heap::hand_out_first(ChainWord w, ChainWord& rest) noexcept {
  auto* const block = chain::first(w);
  if (!chain::intact(w)) report_write_after_free("malloc", block);
  rest = chain::rest(w);
  block[1] = 0;
  return block;
}

// As above; the rest goes into the word, or elsewhere if another thread of the slot was faster or the slot is stopped.
void* Heap::hand_out(Slot& slot, HomeClass word, ChainWord w) noexcept {
  ChainWord rest = chain::empty;
  void* const block = hand_out_first(w, rest);
  TERRACE_ASSERT(rest == chain::empty || !core_.homes_are_slots() || home_of_chain(rest) == word,
                 "I2: a word gets blocks of another home class");
  if (rest != chain::empty && !core_.put_word(slot, word, rest)) store_chain(rest);
  return block;
}

// The word of the slot that malloc pops from. It is the one that blocks of the slot's home are pushed onto; where slots share
// homes, the fast path can not compute that one, and uses home 0's, which no slot has.
HomeClass Heap::own_word(const Slot& slot, SizeClass c) const noexcept {
  return home_class(c, core_.homes_are_slots() ? core_.home_of(slot) : 0);
}

// From a depot, as far as the slot may hold it. A chain of bulky blocks that was gathered under a larger cap, elsewhere or
// earlier, goes to the slabs if the budget does not grant such a cap here: else slots would hold much that nobody counts.
ChainWord Heap::fetch_within_cap(Slot& slot, HomeClass h, unsigned cap) noexcept {
  const ChainWord w = fetch_chain(h);
  if (class_size(class_of(h)) <= bulky) return w;
  while (chain::count(w) > max_of(cap, 1U)) {
    const unsigned grown = grow_cap(slot, h);
    if (grown <= cap) {
      slabs_.put_back(w);
      return chain::empty;
    }
    cap = grown;
  }
  return w;
}

void* Heap::refill(Slot& slot, SizeClass c) noexcept {
  const HomeClass word = own_word(slot, c);
  const HomeClass h = home_class(c, core_.home_of(slot));
  if (slot.refills[index(c)].add() % calls_between_ticks == calls_between_ticks - 1) tick();
  mark_recent(slot, h);
  ChainWord w = core_.take_reserve(slot, h);
  if (w == chain::empty && word != h) w = core_.take_word(slot, h);
  if (w != chain::empty) return hand_out(slot, word, w);

  const unsigned cap = grow_cap(slot, h);
  w = fetch_within_cap(slot, h, cap);
  if (w == chain::empty) {
    w = slabs_.cut(h, max_of(cap, smallest_chain(class_size(c))));
    follow_frontier();
    keep_bound();
  }
  if (w != chain::empty) return hand_out(slot, word, w);
  if (void* const block = steal_block(c)) return block;
  if (make_room(0)) w = slabs_.cut(h, 1);
  if (w != chain::empty) return hand_out(slot, word, w);
  if (void* const block = steal_block(c)) return block;
  transfers_[index(c)].failed_refills.add();
  return nullptr;
}

void* Heap::allocate_past_core(SizeClass c) noexcept {
  const HomeClass h = home_class(c, 0);
  ChainWord w = fetch_chain(h);
  if (w == chain::empty) w = slabs_.cut(h, 1);
  void* block = nullptr;
  if (w == chain::empty && (block = steal_block(c)) == nullptr && make_room(0) && (w = slabs_.cut(h, 1)) == chain::empty)
    block = steal_block(c);
  if (w != chain::empty) {
    ChainWord rest = chain::empty;
    block = hand_out_first(w, rest);
    if (rest != chain::empty) store_chain(rest);
  }
  if (block != nullptr) transfers_[index(c)].handed_out.add();
  return block;
}

void* Heap::allocate_after_miss(SizeClass c) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr) return allocate_past_core(c);
  // Not empty: another thread of the slot refilled it, or the chain is broken; pop() tells, and reports.
  if (chain::has_blocks(peek(slot->words[index(own_word(*slot, c))]))) [[unlikely]]
    return allocate_small(c);
  return refill(*slot, c);
}

void* Heap::allocate_small(SizeClass c) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr) return allocate_past_core(c);
  if (void* const block = core_.pop(*slot, own_word(*slot, c))) return block;
  return refill(*slot, c);
}

// A full word: its chain becomes the reserve, and what was the reserve leaves. A word of another home has none.
void Heap::spill(Slot& slot, HomeClass h) noexcept {
  const SizeClass c = class_of(h);
  ChainWord w = core_.take_word(slot, h);
  if (w == chain::empty) return;
  TERRACE_ASSERT(home_of_chain(w) == h, "I2: a word holds blocks of another home class");
  const std::uint64_t nth = slot.spills[index(c)].add();
  if (nth % calls_between_ticks == calls_between_ticks - 1) tick();
  if (nth % calls_between_looks == calls_between_looks - 1) update_limits();
  if (!budget_.has(0)) shrink_cap(slot, h);
  const bool at_home = h == home_class(c, core_.home_of(slot));
  if (at_home) {
    const ChainWord before = core_.take_reserve(slot, h);
    if (core_.put_reserve(slot, h, w))
      w = before;
    else if (before != chain::empty)
      store_chain(before);
  }
  if (w == chain::empty) return;
  if (!at_home) transfers_[index(c)].foreign.add(chain::count(w));
  store_chain(w);
  keep_bound();
}

void Heap::free_past_core(void* p) noexcept {
  slabs_.put_back(chain::pushed(chain::empty, p));
  keep_bound();
}

void Heap::free_small(void* p, HomeClass h) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr) return free_past_core(p);
  // Twice: after a spill there is room, unless the word is stopped or other threads of the slot fill it at once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const arch::Sequence r = core_.push(*slot, h, p);
    if (r == arch::Sequence::done) return;
    if (r == arch::Sequence::freed_twice) report_double_free("free", p);
    if (attempt == 0) {
      const unsigned before = load_cap(*slot, h);
      if (grow_cap(*slot, h) <= before)
        spill(*slot, h);
      else
        keep_bound();
    }
  }
  free_past_core(p);
}

}  // namespace terrace::heap
