// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/levels/block_levels.h"

#include "base/report.h"
#include "heap/levels/grants.h"
#include "heap/levels/upkeep.h"
#include "os/possible_cpus.h"

#include <utility>

namespace terrace::heap {
namespace {

using level::Magazine, level::Slot;

constexpr std::uint64_t calls_between_ticks = 32;  // of refills or spills of one class
constexpr std::uint64_t calls_between_looks = 8;   // of spills of one class: how much is in use by now?

}  // namespace

// What was opened when memory ran short stays, and is not opened again.
bool BlockLevels::open(level::ThreadSlots<Slot>::Drain drain, const span::Window& window) noexcept {
  const percpu::Ladder& ladder = percpu::ladder();
  topology::read(topology_);
  locator_.open(ladder, topology_);
  const unsigned slots = topology_.cpu_count > 1 ? topology_.cpu_count : os::possible_cpus();
  const unsigned shards = min_of(slots, level::most_shards);
  // Slabs are bound to nodes; depots are so, too, where a node has several processors.
  const bool has_nodes = topology_.node_count > 1 && topology_.node_count < topology_.llc_count;
  for (std::uint32_t cpu = 0; has_nodes && cpu < min_of(topology_.cpu_count, topology::max_cpus); ++cpu)
    node_of_processor_[index(topology_.llc_of(CpuId{cpu}))] = static_cast<std::uint8_t>(topology_.node_of(CpuId{cpu}));
  if (!processors_.open({.where = &level::Locality::processor,
                         .count = topology_.llc_count,
                         .shards = shards,
                         .group = has_nodes ? node_of_processor_.data() : nullptr}) ||
      !nodes_.open({.where = &level::Locality::node, .count = has_nodes ? topology_.node_count : 0, .shards = shards}) ||
      !core_.open(ladder, slots, drain) || !slab_level_.slabs().bind_to_nodes(topology_.node_count)) {
    return false;
  }
  magazines_.open(processors_.depots(), slab_level_.slabs(), window);
  return true;
}

// After a refill or a spill. What stayed within the slot granted and freed nothing, but it may have been refused: a class that
// only exchanges its magazines grows, too.
void BlockLevels::tend(Slot& slot, bool due, bool within_slot) noexcept {
  if (wants_room(slot)) make_room(slot);
  if (within_slot && !due) return;
  if (due) upkeep::tick(maintenance_);
  upkeep::keep_bound(maintenance_);
}

// What takes much stack is done one after the other, not one within the other.
BlockLevels::Got BlockLevels::allocate_beyond(Slot* slot, SizeClass c) noexcept {
  const Got got = slot == nullptr ? allocate_bypassing_core(c) : refill(*slot, c);
  if (got.block == nullptr) return last_resort(slot, c, !got.refused);
  if (slot != nullptr) tend(*slot, CoreLevel::refills(*slot, c).read() % calls_between_ticks == 0, got.within_slot);
  return got;
}

void BlockLevels::free(void* p, HomeClass h) noexcept {
  Slot* const slot = core_.current_for(h);
  if (slot == nullptr) return free_bypassing_core(p);
  const arch::Sequence r = core_.push(*slot, h, p);
  if (r == arch::Sequence::done) return;
  if (r == arch::Sequence::freed_twice) report_double_free(function_that_frees(h), p);
  const Spilled spilled = spill(*slot, h, p);
  tend(*slot, spilled.due, spilled.within_slot);
}

void BlockLevels::make_room(Slot& slot) noexcept {
  core_.make_room(slot);
  const level::Locality at = here(&slot).at;
  processors_.make_room(at);
  nodes_.make_room(at);
}

// A word without blocks. The magazines in it and beside it are the caller's in between: another thread of the slot finds none.
// Null: there is no new slab, or no memory for a magazine.
BlockLevels::Got BlockLevels::refill(Slot& slot, SizeClass c) noexcept {
  const HomeClass word = core_.own_word(slot, c), h = home_class(c, core_.home_of(slot));
  CoreLevel::refills(slot, c).add();
  core_.mark_recent(slot, h);
  const Magazine loaded = core_.take_word(slot, word);
  if (loaded.count() != 0) return refill_from(slot, c, loaded, {});
  const Magazine previous = core_.take_previous(slot, h);
  return previous.count() != 0 ? refill_from(slot, c, previous, loaded) : refill_from_above(slot, c, loaded, previous);
}

// One that holds blocks; the other one, if it is there, holds none.
BlockLevels::Got BlockLevels::refill_from(Slot& slot, SizeClass c, Magazine loaded, Magazine without) noexcept {
  const Here at = here(&slot);
  keep_empty(at, home_class(c, core_.home_of(slot)), without);
  void* const block = loaded.pop();
  load(at, core_.own_word(slot, c), loaded);
  return {.block = block, .within_slot = true};
}

// From the nearest level above the slots that has blocks.
Magazine BlockLevels::fetch(const Here& here, Wanted& wanted) noexcept {
  const auto m = above_slots_.take<Magazine>(here.at, wanted);
  if (wanted.foreign) transfers(class_of(wanted.h)).foreign.add(m.count());
  return m;
}

// Neither of the slot's magazines holds a block, if they are there.
BlockLevels::Got BlockLevels::refill_from_above(Slot& slot, SizeClass c, Magazine one, Magazine other) noexcept {
  const Here here = this->here(&slot);
  const HomeClass word = core_.own_word(slot, c), h = home_class(c, core_.home_of(slot));
  Magazine full;
  bool was_cut = false, refused = false;
  if (word != h) full = core_.take_word(slot, h);
  if (full.count() == 0) {
    give_empty(here, full);
    const unsigned cap = core_.grow_cap(slot, h);
    Wanted wanted{.h = h, .rounds = max_of<unsigned>(cap, smallest_load(c)), .empty = one ? one : std::exchange(other, {})};
    full = within_cap(slot, h, fetch(here, wanted));
    one = wanted.empty;
    was_cut = wanted.was_cut;
    refused = wanted.refused;
  }
  keep_empty(here, h, one ? one : std::exchange(other, {}));
  give_empty(here, other);
  void* block = nullptr;
  if (full.count() != 0) {
    block = full.pop();
    load(here, word, full);
  } else {
    give_empty(here, full);
  }
  if (was_cut) fast_path_.follow_frontier();
  return {.block = block, .refused = refused};
}

// Bulky blocks that were gathered under a larger cap, elsewhere or earlier, go to the slabs if the budget does not grant such a
// cap here: else slots would hold much that nobody counts.
Magazine BlockLevels::within_cap(Slot& slot, HomeClass h, Magazine m) noexcept {
  if (class_size(class_of(h)) <= bulky) return m;
  unsigned cap = core_.load_cap(slot, h);
  while (m.count() > max_of(cap, 1U)) {
    const unsigned grown = core_.grow_cap(slot, h);
    if (grown <= cap) {
      slab_level_.unload(m, max_of(cap, 1U));
      m.keep(max_of(cap, 1U));
    }
    cap = grown;
  }
  return m;
}

// There is no new slab, or no memory for a magazine. Of a slot; null: past the core level. `may_grow`: the system was not asked
// for a slab.
BlockLevels::Got BlockLevels::last_resort(Slot* slot, SizeClass c, bool may_grow) noexcept {
  Got got = cut_or_steal(slot, c, may_grow);
  if (got.block == nullptr && upkeep::make_room(maintenance_, 0)) got = cut_or_steal(slot, c, true);
  if (slot == nullptr) {
    if (got.block != nullptr) transfers(c).handed_out.add();
    return got;
  }
  if (got.block == nullptr) transfers(c).failed_refills.add();
  fast_path_.follow_frontier();
  upkeep::keep_bound(maintenance_);
  return got;
}

BlockLevels::Got BlockLevels::cut_or_steal(Slot* slot, SizeClass c, bool may_grow) noexcept {
  Here at = here(slot);
  const HomeClass h = home_class(c, slot == nullptr ? 0 : core_.home_of(*slot));
  if (void* const block = slab_level_.slabs().cut_one(h, may_grow, at.at.node)) return {.block = block, .raw = true};
  void* const block = steal_block(at, c);
  return {.block = block, .raw = at.raw};
}

// A block that waits for another home, in a depot or a slab. It is foreign here and goes home when it is freed.
void* BlockLevels::steal_block(Here& here, SizeClass c) noexcept {
  if (!is_subline(c)) return nullptr;
  for (std::size_t home = 0; home < max_homes; ++home) {
    void* const block = take_one(here, home_class(c, home), false);
    if (block == nullptr) continue;
    transfers(c).foreign.add();
    return block;
  }
  return nullptr;
}

// One block, past the core level.
void* BlockLevels::take_one(Here& here, HomeClass h, bool may_grow) noexcept {
  Wanted wanted{.h = h, .rounds = 1, .empty = {}};
  Magazine m = processors_.take(here.at, wanted);
  if (!m) m = nodes_.take(here.at, wanted);
  here.raw = !m;
  if (!m) return slab_level_.slabs().cut_one(h, may_grow, here.at.node);
  void* const block = m.pop();
  store(here, m);
  return block;
}

BlockLevels::Got BlockLevels::allocate_bypassing_core(SizeClass c) noexcept {
  Here past = here(nullptr);
  void* const block = take_one(past, home_class(c, 0), true);
  if (block != nullptr) transfers(c).handed_out.add();
  return {.block = block, .raw = past.raw, .refused = block == nullptr};
}

// The loaded magazine of the slot from now on; or elsewhere if another thread of the slot was faster or the slot is stopped.
void BlockLevels::load(const Here& here, HomeClass word, Magazine m) noexcept {
  TERRACE_ASSERT(m.count() == 0 || !core_.homes_are_slots() || slab_level_.slabs().home_of(m) == word,
                 "I2: a word gets blocks of another home class");
  const unsigned cap = min_of<unsigned>(core_.load_cap(*here.slot, word), level::magazine_capacity(m.kind()));
  if (m.limit() != cap) m.set_limit(cap);
  if (!core_.put_word(*here.slot, word, m)) store(here, m);
}

// It stays with the slot, for the next exchange.
void BlockLevels::keep_empty(const Here& here, HomeClass h, Magazine m) noexcept {
  if (m && !core_.put_previous(*here.slot, h, m)) give_empty(here, m);
}

// To the nearest level above the slots that accepts it.
void BlockLevels::store(const Here& here, Magazine m) noexcept {
  if (m.count() == 0) return give_empty(here, m);
  above_slots_.give(here.at, m);
}

// The full one becomes the previous one, and what that was goes on, if it holds blocks. An empty one, or none.
Magazine BlockLevels::exchange_previous(const Here& here, HomeClass h, Magazine loaded) noexcept {
  const Magazine before = core_.take_previous(*here.slot, h);
  if (!core_.put_previous(*here.slot, h, loaded)) store(here, loaded);
  if (before.count() == 0) return before;
  store(here, before);
  return {};
}

// A full word: its magazine becomes the previous one, and the block goes into what was the previous one, if that is empty, or
// into another empty one. A word of another home has no previous one.
BlockLevels::Spilled BlockLevels::spill(Slot& slot, HomeClass h, void* p) noexcept {
  const Here here = this->here(&slot);
  const SizeClass c = class_of(h);
  const unsigned before = core_.load_cap(slot, h), cap = core_.grow_cap(slot, h);
  Magazine loaded = core_.take_word(slot, h);
  if (loaded && loaded.count() < cap) loaded = magazines_.enlarged(here.at, loaded, cap);
  if (loaded && loaded.has_room()) {
    loaded.push(p);
    load(here, h, loaded);
    return {};
  }
  Magazine next;
  bool due = false, exchanged = false;
  if (loaded) {
    const std::uint64_t nth = CoreLevel::spills(slot, c).add();
    due = nth % calls_between_ticks == calls_between_ticks - 1;
    if (nth % calls_between_looks == calls_between_looks - 1) upkeep::update_limits(maintenance_);
    if (!core_.budget().has(0)) core_.shrink_cap(slot, h);
    if (h == home_class(c, core_.home_of(slot))) {
      next = exchange_previous(here, h, loaded);
      exchanged = next && cap == before;
    } else {
      transfers(c).foreign.add(loaded.count());
      store(here, loaded);
    }
  }
  const unsigned limit = core_.load_cap(slot, h);
  if (limit != 0) next = magazines_.enlarged(here.at, next ? next : magazines_.take(here.at, limit), limit);
  if (!next || limit == 0) {
    give_empty(here, next);
    slab_level_.put_back(p);
    return {.due = due};
  }
  next.push(p);
  load(here, h, next);
  return {.due = due, .within_slot = exchanged};
}

void BlockLevels::free_bypassing_core(void* p) noexcept {
  slab_level_.put_back(p);
  upkeep::keep_bound(maintenance_);
}

}  // namespace terrace::heap
