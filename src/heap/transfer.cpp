// SPDX-License-Identifier: MIT OR Apache-2.0
// How magazines move between the levels: refill when a word is empty, spill when it is full.
//
//   refill   previous magazine -> own processor's depot, then the others' -> slabs -> another home's depot or slab, one block
//   spill    loaded magazine -> previous one, and what was there -> own processor's depot -> slabs
//
// How much of each class a slot may hold: grants.cpp.
#include "base/assert.h"
#include "base/hardened.h"
#include "base/report.h"
#include "heap/duplicates.h"
#include "heap/grants.h"
#include "heap/heap.h"
#include "heap/transfer_sizes.h"
#include "os/clock.h"
#include "os/rseq_area.h"

#include <utility>

namespace terrace::heap {
namespace {

using level::Magazine;
using level::Slot;

constexpr std::uint64_t calls_between_ticks = 32;  // of refills or spills of one class
constexpr std::uint64_t calls_between_looks = 8;   // of spills of one class: how much is in use by now?

}  // namespace

unsigned Heap::processor() const noexcept {
  if (depots_.processors() == 1) return 0;
  const int cpu = cpu_id_offset_ != 0 ? arch::load_slot(cpu_id_offset_) : os::current_cpu();
  return cpu < 0 ? 0 : index(topology_.llc_of(CpuId{static_cast<std::uint32_t>(cpu)})) % depots_.processors();
}

// Where the caller's magazines go, and come from. Past the core level it is anybody's shard.
level::Place Heap::place() noexcept {
  const Slot* const slot = core_.current();
  const std::size_t number = slot == nullptr ? 0 : core_.number_of(*slot);
  return {.processor = processor(), .shard = static_cast<unsigned>(number % depots_.shards())};
}

Magazine Heap::fetch(HomeClass h) noexcept {
  const level::Taken taken = depots_.take(place(), index(h));
  const Magazine m = taken.magazine;
  if (!m) return m;
  depot_budget_.release(std::uint64_t{m.count()} * class_size(class_of(h)));
  if (taken.foreign) transfers_[index(class_of(h))].foreign.add(m.count());
  return m;
}

// All its blocks go to the slabs.
void Heap::unload(Magazine& m) noexcept {
  if constexpr (hardened) check_cleared(m.begin(), m.count());
  slabs_.put_back(m.begin(), m.count());
  m.clear();
}

// And then the magazine does.
void Heap::empty(Magazine m) noexcept {
  unload(m);
  magazines_.release(m);
}

// To the depot, or its blocks to the slabs.
void Heap::store(Magazine m) noexcept {
  if (m.count() == 0) return magazines_.give(place(), m);
  const HomeClass h = home_of(m);
  if (reserve_in_depots(h, m.count())) {
    if (const void* const twice = duplicate_in(m)) report_double_free("free", twice);
    if (depots_.put(place(), index(h), m)) return;
    depot_budget_.release(std::uint64_t{m.count()} * class_size(class_of(h)));
  }
  unload(m);
  magazines_.give(place(), m);
}

// When there is no new slab: a block that waits for another home, in a depot or a slab. It is foreign here and goes home when
// it is freed.
void* Heap::steal_block(SizeClass c) noexcept {
  if (!is_subline(c)) return nullptr;
  for (std::size_t home = 0; home < max_homes; ++home) {
    const HomeClass h = home_class(c, home);
    void* const block = take_one(h, false);
    if (block == nullptr) continue;
    transfers_[index(c)].foreign.add();
    return block;
  }
  return nullptr;
}

// One block, past the core level.
void* Heap::take_one(HomeClass h, bool may_grow) noexcept {
  Magazine m = fetch(h);
  if (!m) return slabs_.cut_one(h, may_grow);
  void* const block = m.pop();
  store(m);
  return block;
}

// The loaded magazine of the slot from now on; or elsewhere if another thread of the slot was faster or the slot is stopped.
void Heap::load(Slot& slot, HomeClass word, Magazine m) noexcept {
  TERRACE_ASSERT(m.count() == 0 || !core_.homes_are_slots() || home_of(m) == word,
                 "I2: a word gets blocks of another home class");
  const unsigned cap = min_of<unsigned>(load_cap(slot, word), level::magazine_capacity(m.kind()));
  if (m.limit() != cap) m.set_limit(cap);
  if (!core_.put_word(slot, word, m)) store(m);
}

// It stays with the slot, for the next exchange.
void Heap::keep_empty(Slot& slot, HomeClass h, Magazine m) noexcept {
  if (m && !core_.put_previous(slot, h, m)) magazines_.give(place(), m);
}

// The word of the slot that malloc pops from. It is the one that blocks of the slot's home are pushed onto; where slots share
// homes, the fast path can not compute that one, and uses home 0's, which no slot has.
HomeClass Heap::own_word(const Slot& slot, SizeClass c) const noexcept {
  return home_class(c, core_.homes_are_slots() ? core_.home_of(slot) : 0);
}

// From a depot, as far as the slot may hold it. Bulky blocks that were gathered under a larger cap, elsewhere or earlier, go to
// the slabs if the budget does not grant such a cap here: else slots would hold much that nobody counts.
Magazine Heap::fetch_within_cap(Slot& slot, HomeClass h, unsigned cap) noexcept {
  Magazine m = fetch(h);
  if (class_size(class_of(h)) <= bulky) return m;
  while (m.count() > max_of(cap, 1U)) {
    const unsigned grown = grow_cap(slot, h);
    if (grown <= cap) {
      unload(m);
      magazines_.give(place(), m);
      return {};
    }
    cap = grown;
  }
  return m;
}

// A word without blocks. The magazines in it and beside it are the caller's in between: another thread of the slot finds none.
void* Heap::refill(Slot& slot, SizeClass c) noexcept {
  const HomeClass word = own_word(slot, c);
  const HomeClass h = home_class(c, core_.home_of(slot));
  if (slot.refills[index(c)].add() % calls_between_ticks == calls_between_ticks - 1) tick();
  mark_recent(slot, h);
  Magazine loaded = core_.take_word(slot, word);
  if (loaded.count() == 0) {
    const Magazine without = loaded;
    loaded = core_.take_previous(slot, h);
    if (loaded.count() == 0) return refill_from_above(slot, c, without, loaded);
    keep_empty(slot, h, without);
  }
  void* const block = loaded.pop();
  load(slot, word, loaded);
  return block;
}

// Neither of the slot's magazines holds a block, if they are there.
void* Heap::refill_from_above(Slot& slot, SizeClass c, Magazine one, Magazine other) noexcept {
  const HomeClass word = own_word(slot, c);
  const HomeClass h = home_class(c, core_.home_of(slot));
  Magazine full;
  if (word != h) full = core_.take_word(slot, h);
  if (full.count() == 0) {
    if (full) magazines_.give(place(), full);
    full = fetch_within_cap(slot, h, grow_cap(slot, h));
  }
  if (!full) {
    full = cut_into(one ? one : other, h, max_of<unsigned>(load_cap(slot, h), smallest_load(c)));
    if (one)
      one = {};
    else
      other = {};
  }
  if (!one) one = std::exchange(other, {});
  keep_empty(slot, h, one);
  if (other) magazines_.give(place(), other);
  if (full.count() != 0) {
    void* const block = full.pop();
    load(slot, word, full);
    return block;
  }
  if (full) magazines_.give(place(), full);
  void* const block = last_resort(c, h);
  if (block == nullptr) transfers_[index(c)].failed_refills.add();
  return block;
}

// There is no new slab, or no memory for a magazine.
void* Heap::last_resort(SizeClass c, HomeClass h) noexcept {
  void* block = slabs_.cut_one(h, true);
  if (block == nullptr) block = steal_block(c);
  if (block == nullptr && make_room(0) && (block = slabs_.cut_one(h, true)) == nullptr) block = steal_block(c);
  return block;
}

// Up to `want` blocks of a slab, in `m` or, if that is none, a new one.
Magazine Heap::cut_into(Magazine m, HomeClass h, unsigned want) noexcept {
  m = magazines_.enlarged(place(), m ? m : magazines_.take(place(), want), want);
  if (!m) return m;
  m.add(slabs_.cut(h, m.limit(), m.end()));
  follow_frontier();
  keep_bound();
  return m;
}

void* Heap::allocate_past_core(SizeClass c) noexcept {
  const HomeClass h = home_class(c, 0);
  void* block = take_one(h, true);
  if (block == nullptr) block = last_resort(c, h);
  if (block != nullptr) transfers_[index(c)].handed_out.add();
  return block;
}

void* Heap::allocate_after_miss(SizeClass c) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr) return allocate_past_core(c);
  return refill(*slot, c);
}

void* Heap::allocate_small(SizeClass c) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr) return allocate_past_core(c);
  if (void* const block = core_.pop(*slot, own_word(*slot, c))) return block;
  return refill(*slot, c);
}

// A full word: its magazine becomes the previous one, and the block goes into what was the previous one, if that is empty, or
// into another empty one. A word of another home has no previous one.
void Heap::spill(Slot& slot, HomeClass h, void* p) noexcept {
  const SizeClass c = class_of(h);
  const unsigned cap = grow_cap(slot, h);
  Magazine loaded = core_.take_word(slot, h);
  if (loaded && loaded.count() < cap) loaded = magazines_.enlarged(place(), loaded, cap);
  if (loaded && loaded.has_room()) {
    loaded.push(p);
    load(slot, h, loaded);
    return keep_bound();
  }
  Magazine next;
  const bool at_home = h == home_class(c, core_.home_of(slot));
  if (loaded) {
    const std::uint64_t nth = slot.spills[index(c)].add();
    if (nth % calls_between_ticks == calls_between_ticks - 1) tick();
    if (nth % calls_between_looks == calls_between_looks - 1) update_limits();
    if (!budget_.has(0)) shrink_cap(slot, h);
    if (at_home) {
      next = core_.take_previous(slot, h);
      if (core_.put_previous(slot, h, loaded)) loaded = {};
      if (next.count() != 0) {
        store(next);
        next = {};
      }
    } else {
      transfers_[index(c)].foreign.add(loaded.count());
    }
    if (loaded) store(loaded);
  }
  const unsigned limit = load_cap(slot, h);
  if (limit != 0) next = magazines_.enlarged(place(), next ? next : magazines_.take(place(), limit), limit);
  if (!next || limit == 0) {
    if (next) magazines_.give(place(), next);
    return free_past_core(p);
  }
  next.push(p);
  load(slot, h, next);
  keep_bound();
}

void Heap::free_past_core(void* p) noexcept {
  const std::uint64_t block = address_of(p);
  slabs_.put_back(&block, 1);
  keep_bound();
}

void Heap::free_small(void* p, HomeClass h) noexcept {
  Slot* const slot = core_.current();
  if (slot == nullptr) return free_past_core(p);
  const arch::Sequence r = core_.push(*slot, h, p);
  if (r == arch::Sequence::done) return;
  if (r == arch::Sequence::freed_twice) report_double_free("free", p);
  spill(*slot, h, p);
}

}  // namespace terrace::heap
