// SPDX-License-Identifier: MIT OR Apache-2.0
// The levels of blocks, and the protocol between a program and them: refill when a word is empty, spill when it is full.
//
//   refill   previous magazine -> own processor's depot, then the others' -> node's depot -> slabs
//            -> another home's depot or slab, one block
//   spill    loaded magazine -> previous one, and what was there -> own processor's depot -> node's depot -> slabs
//
// How much of each class a slot may hold: grants.cpp.
#pragma once

#include "heap/core_level.h"
#include "heap/depot_level.h"
#include "heap/fast_path_switch.h"
#include "level/levels.h"

namespace terrace::heap {

/// What happens rarely, per size class. The rest is counted where it happens: in slots, depots and slabs. How much was freed
/// follows: what left the slabs, and is neither back nor held by a level, is in use.
struct TransferCounters {
  SharedCounter handed_out;  // blocks that went to the program past the core level
  SharedCounter failed_refills;
  SharedCounter foreign;  // blocks that came from, or went into, another processor's, node's or home's buffer
};

class BlockLevels {
 public:
  constexpr BlockLevels(Slabs& slabs, FastPathSwitch& fast, Maintenance& maintenance) noexcept
      : slab_level_(slabs, magazines_), core_(slab_level_, maintenance), fast_path_(fast), maintenance_(maintenance) {}
  /// False: there is no memory for them.
  bool open(level::ThreadSlots<level::Slot>::Drain drain, const span::Window& window) noexcept;

  /// Null: the system gives no memory.
  void* allocate(SizeClass c) noexcept;
  /// As allocate(), after the fast path found its word empty.
  void* allocate_after_miss(SizeClass c) noexcept;
  /// Requires that the page map names h for the block.
  void free(void* p, HomeClass h) noexcept;

  /// The NUMA node that the calling thread is on.
  unsigned node() const noexcept { return locator_.here(0).node; }

  constexpr CoreLevel& core() noexcept { return core_; }
  ProcessorLevel& processors() noexcept { return processors_; }
  NodeLevel& nodes() noexcept { return nodes_; }
  Magazines& magazines() noexcept { return magazines_; }
  SlabLevel& slabs() noexcept { return slab_level_; }
  TransferCounters& transfers(SizeClass c) noexcept { return transfers_[index(c)]; }

  /// Calls body(shard) for each shard of the depots.
  template <class Body>
  void for_each_shard(Body body) {
    for (DepotLevel* const level : {static_cast<DepotLevel*>(&processors_), static_cast<DepotLevel*>(&nodes_)}) {
      for (unsigned i = 0; i < level->depots().count(); ++i) body(level->depots().at(i));
    }
  }

  /// Bytes that slots and depots may hold and hold, with their magazines.
  std::uint64_t granted() noexcept {
    return core_.budget().granted() + processors_.budget().granted() + nodes_.budget().granted() + magazines_.bytes();
  }

 private:
  /// Where an operation began, and its slot; null: past the core level.
  struct Here {
    level::Locality at;
    level::Slot* slot;
  };
  Here here(level::Slot* slot) noexcept {
    return {.at = locator_.here(slot == nullptr ? 0 : core_.number_of(*slot)), .slot = slot};
  }
  void* refill(const Here& here, SizeClass c) noexcept;
  void* refill_from_above(const Here& here, SizeClass c, level::Magazine one, level::Magazine other) noexcept;
  level::Magazine fetch(const Here& here, Wanted& wanted) noexcept;
  level::Magazine within_cap(level::Slot& slot, HomeClass h, level::Magazine m) noexcept;
  void spill(const Here& here, HomeClass h, void* p) noexcept;
  level::Magazine exchange_previous(const Here& here, HomeClass h, level::Magazine loaded) noexcept;
  void store(const Here& here, level::Magazine m) noexcept;
  void load(const Here& here, HomeClass word, level::Magazine m) noexcept;
  void keep_empty(const Here& here, HomeClass h, level::Magazine m) noexcept;
  void give_empty(const Here& here, level::Magazine m) noexcept { magazines_.give(here.at, m); }

  void* allocate_past_core(SizeClass c) noexcept;
  void free_past_core(void* p) noexcept;
  void* take_one(const Here& here, HomeClass h, bool may_grow) noexcept;
  void* steal_block(const Here& here, SizeClass c) noexcept;
  void* last_resort(const Here& here, SizeClass c, HomeClass h) noexcept;

  Magazines magazines_;
  SlabLevel slab_level_;
  NodeLevel nodes_{slab_level_};
  ProcessorLevel processors_{slab_level_};
  CoreLevel core_;
  level::Levels<ProcessorLevel, NodeLevel, SlabLevel> above_slots_{processors_, nodes_, slab_level_};

  topology::Topology topology_;
  std::array<std::uint8_t, topology::max_llcs> node_of_processor_{};
  level::Locator locator_;
  FastPathSwitch& fast_path_;
  Maintenance& maintenance_;
  TransferCounters transfers_[max_size_classes];
};

}  // namespace terrace::heap
