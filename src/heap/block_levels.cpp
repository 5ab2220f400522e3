// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/block_levels.h"

#include "base/report.h"
#include "heap/grants.h"
#include "heap/maintenance.h"
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

void* BlockLevels::allocate(SizeClass c) noexcept {
  Slot* const slot = core_.current();
  if (slot != nullptr) {
    if (void* const block = core_.pop(*slot, core_.own_word(*slot, c))) return block;
  }
  Here at = here(slot);
  return slot == nullptr ? allocate_past_core(at, c) : refill(at, c);
}

void* BlockLevels::allocate_after_miss(SizeClass c) noexcept {
  Slot* const slot = core_.current();
  Here at = here(slot);
  return slot == nullptr ? allocate_past_core(at, c) : refill(at, c);
}

void BlockLevels::free(void* p, HomeClass h) noexcept {
  Slot* const slot = core_.current_for(h);
  if (slot == nullptr) return free_past_core(p);
  const arch::Sequence r = core_.push(*slot, h, p);
  if (r == arch::Sequence::done) return;
  if (r == arch::Sequence::freed_twice) report_double_free(function_that_frees(h), p);
  spill(here(slot), h, p);
}

// A word without blocks. The magazines in it and beside it are the caller's in between: another thread of the slot finds none.
void* BlockLevels::refill(Here& here, SizeClass c) noexcept {
  Slot& slot = *here.slot;
  const HomeClass word = core_.own_word(slot, c), h = home_class(c, core_.home_of(slot));
  if (CoreLevel::refills(slot, c).add() % calls_between_ticks == calls_between_ticks - 1) maintenance_.tick();
  core_.mark_recent(slot, h);
  Magazine loaded = core_.take_word(slot, word);
  if (loaded.count() == 0) {
    const Magazine without = loaded;
    loaded = core_.take_previous(slot, h);
    if (loaded.count() == 0) return refill_from_above(here, c, without, loaded);
    keep_empty(here, h, without);
  }
  void* const block = loaded.pop();
  load(here, word, loaded);
  return block;
}

// Neither of the slot's magazines holds a block, if they are there.
void* BlockLevels::refill_from_above(Here& here, SizeClass c, Magazine one, Magazine other) noexcept {
  Slot& slot = *here.slot;
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
    block = last_resort(here, c, h, !refused);
    was_cut = true;
    if (block == nullptr) transfers(c).failed_refills.add();
  }
  if (was_cut) {
    fast_path_.follow_frontier();
    maintenance_.keep_bound();
  }
  return block;
}

// From the nearest level above the slots that has blocks.
Magazine BlockLevels::fetch(const Here& here, Wanted& wanted) noexcept {
  const auto m = above_slots_.take<Magazine>(here.at, wanted);
  if (wanted.foreign) transfers(class_of(wanted.h)).foreign.add(m.count());
  return m;
}

// Bulky blocks that were gathered under a larger cap, elsewhere or earlier, go to the slabs if the budget does not grant such a
// cap here: else slots would hold much that nobody counts.
Magazine BlockLevels::within_cap(Slot& slot, HomeClass h, Magazine m) noexcept {
  if (class_size(class_of(h)) <= bulky) return m;
  unsigned cap = core_.load_cap(slot, h);
  while (m.count() > max_of(cap, 1U)) {
    const unsigned grown = core_.grow_cap(slot, h);
    if (grown <= cap) slab_level_.unload(m, max_of(cap, 1U));
    cap = grown;
  }
  return m;
}

// There is no new slab, or no memory for a magazine. `may_grow`: the system was not asked for a slab.
void* BlockLevels::last_resort(Here& here, SizeClass c, HomeClass h, bool may_grow) noexcept {
  Slabs& slabs = slab_level_.slabs();
  here.raw = true;
  void* block = slabs.cut_one(h, may_grow, here.at.node);
  if (block == nullptr) block = steal_block(here, c);
  if (block == nullptr && maintenance_.make_room(0) && (block = slabs.cut_one(h, true, here.at.node)) == nullptr)
    block = steal_block(here, c);
  return block;
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

void* BlockLevels::allocate_past_core(Here& past, SizeClass c) noexcept {
  const HomeClass h = home_class(c, 0);
  void* block = take_one(past, h, true);
  if (block == nullptr) block = last_resort(past, c, h, false);
  if (block != nullptr) transfers(c).handed_out.add();
  return block;
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
void BlockLevels::spill(const Here& here, HomeClass h, void* p) noexcept {
  Slot& slot = *here.slot;
  const SizeClass c = class_of(h);
  const unsigned cap = core_.grow_cap(slot, h);
  Magazine loaded = core_.take_word(slot, h);
  if (loaded && loaded.count() < cap) loaded = magazines_.enlarged(here.at, loaded, cap);
  if (loaded && loaded.has_room()) {
    loaded.push(p);
    load(here, h, loaded);
    return maintenance_.keep_bound();
  }
  Magazine next;
  if (loaded) {
    const std::uint64_t nth = CoreLevel::spills(slot, c).add();
    if (nth % calls_between_ticks == calls_between_ticks - 1) maintenance_.tick();
    if (nth % calls_between_looks == calls_between_looks - 1) maintenance_.update_limits();
    if (!core_.budget().has(0)) core_.shrink_cap(slot, h);
    if (h == home_class(c, core_.home_of(slot))) {
      next = exchange_previous(here, h, loaded);
    } else {
      transfers(c).foreign.add(loaded.count());
      store(here, loaded);
    }
  }
  const unsigned limit = core_.load_cap(slot, h);
  if (limit != 0) next = magazines_.enlarged(here.at, next ? next : magazines_.take(here.at, limit), limit);
  if (!next || limit == 0) {
    give_empty(here, next);
    return free_past_core(p);
  }
  next.push(p);
  load(here, h, next);
  maintenance_.keep_bound();
}

void BlockLevels::free_past_core(void* p) noexcept {
  slab_level_.put_back(p);
  maintenance_.keep_bound();
}

}  // namespace terrace::heap
