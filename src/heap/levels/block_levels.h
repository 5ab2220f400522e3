// SPDX-License-Identifier: MIT OR Apache-2.0
// The levels of blocks, and the protocol between a program and them: refill when a word is empty, spill when it is full.
//
//   refill   previous magazine -> own processor's depot, then the others' -> node's depot -> slabs
//            -> another home's depot or slab, one block
//   spill    loaded magazine -> previous one, and what was there -> own processor's depot -> node's depot -> slabs
//
// How much of each class a slot may hold: grants.cpp.
#pragma once

#include "base/described.h"
#include "heap/fast_path/fast_path_switch.h"
#include "heap/levels/core_level.h"
#include "heap/levels/depot_level.h"
#include "level/levels.h"

namespace terrace::heap {

class BlockLevels {
 public:
  constexpr BlockLevels(Slabs& slabs, FastPathSwitch& fast, Maintenance& maintenance) noexcept
      : slab_level_(slabs, magazines_), fast_path_(fast), maintenance_(maintenance), core_(slab_level_, maintenance) {}
  /// False: there is no memory for them.
  bool open(level::ThreadSlots<level::Slot>::Drain drain, const span::Window& window) noexcept;

  /// A block of the slot's loaded magazine, or null.
  void* at_hand(SizeClass c) noexcept {
    level::Slot* const slot = core_.current();
    return slot == nullptr ? nullptr : core_.pop(*slot, core_.own_word(*slot, c));
  }
  /// After the fast path or at_hand() found nothing. Null: the system gives no memory.
  void* allocate_after_miss(SizeClass c) noexcept { return allocate_beyond(core_.current(), c).block; }
  /// Requires that the page map names h for the block.
  void free(void* p, HomeClass h) noexcept;

  // Object caches:
  /// A class of its own. Class 0: memory is short, or there are too many.
  HomeClass make_objects(const ObjectClasses::Wanted& wanted) noexcept;
  /// Returns the slabs of a class that has no user and no block in any level. False: objects are still in use; the number is
  /// then never reused.
  bool close_objects(HomeClass h) noexcept;
  /// A block, or null. `raw`: it comes from a slab as it is; else it is as it was when it was freed.
  void* allocate_object(HomeClass h, bool& raw) noexcept;
  /// A block of the class that was freed here, or null.
  void* object_at_hand(HomeClass h) noexcept {
    level::Slot* const slot = core_.current_for(h);
    return slot == nullptr ? nullptr : core_.pop(*slot, h);
  }
  /// A block of the class; what happens past the fast path's push.
  void free_object(void* p, HomeClass h) noexcept { free(p, h); }
  // Straight from and to a slab, as blocks are there; null: memory is short.
  void* allocate_raw_object(HomeClass h) noexcept;
  void free_raw(void* p) noexcept;
  /// Moves the depots' blocks of one object class to the slabs.
  void drain_depots(HomeClass h) noexcept;
  os::RankedMutex<os::Rank::object_classes>& objects_mutex() noexcept { return objects_mutex_; }

  /// The NUMA node that the calling thread is on.
  unsigned node() const noexcept { return locator_.here(0).node; }

  constexpr CoreLevel& core() noexcept { return core_; }
  ProcessorLevel& processors() noexcept { return processors_; }
  NodeLevel& nodes() noexcept { return nodes_; }
  Magazines& magazines() noexcept { return magazines_; }
  SlabLevel& slabs() noexcept { return slab_level_; }
  TransferCounters& transfers(SizeClass c) noexcept {
    return is_object(c) ? object_classes[c].transfers : transfers_[index(c)];
  }

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
  friend struct introspect::Layout;
  /// Where an operation began, and its slot; null: past the core level.
  struct Here {
    level::Locality at;
    level::Slot* slot;
    bool raw = false;  // the block that it ends with comes from a slab
  };
  Here here(level::Slot* slot) noexcept {
    return {.at = locator_.here(slot == nullptr ? 0 : core_.number_of(*slot)), .slot = slot};
  }
  struct Got {
    void* block;
    bool raw = false;
    bool refused = false;      // the system had no memory for a slab
    bool within_slot = false;  // from its previous magazine
  };
  struct Spilled {
    bool due = false;          // it is time for a tick
    bool within_slot = false;  // the block is in its previous magazine
  };
  // Not inlined into each other, so that their stack frames do not add up: a signal handler's stack may be small.
  __attribute__((noinline)) Got allocate_beyond(level::Slot* slot, SizeClass c) noexcept;
  Got refill(level::Slot& slot, SizeClass c) noexcept;
  __attribute__((noinline)) Got refill_from(level::Slot& slot, SizeClass c, level::Magazine loaded,
                                            level::Magazine without) noexcept;
  __attribute__((noinline)) Got refill_from_above(level::Slot& slot, SizeClass c, level::Magazine one,
                                                  level::Magazine other) noexcept;
  TERRACE_INLINE level::Magazine fetch(const Here& here, Wanted& wanted) noexcept;
  level::Magazine within_cap(level::Slot& slot, HomeClass h, level::Magazine m) noexcept;
  __attribute__((noinline)) Spilled spill(level::Slot& slot, HomeClass h, void* p) noexcept;
  TERRACE_INLINE void tend(level::Slot& slot, bool due, bool within_slot) noexcept;
  bool wants_room(const level::Slot& slot) const noexcept {
    return core_.wants_room(slot) || processors_.wants_room() || nodes_.wants_room();
  }
  __attribute__((cold, noinline)) void make_room(level::Slot& slot) noexcept;
  level::Magazine exchange_previous(const Here& here, HomeClass h, level::Magazine loaded) noexcept;
  void store(const Here& here, level::Magazine m) noexcept;
  void load(const Here& here, HomeClass word, level::Magazine m) noexcept;
  __attribute__((noinline)) void keep_empty(const Here& here, HomeClass h, level::Magazine m) noexcept;
  void give_empty(const Here& here, level::Magazine m) noexcept { magazines_.give(here.at, m); }

  __attribute__((noinline)) Got allocate_bypassing_core(SizeClass c) noexcept;
  void free_bypassing_core(void* p) noexcept;
  bool open_objects(unsigned number, bool prepared) noexcept;
  void* take_one(Here& here, HomeClass h, bool may_grow) noexcept;
  void* steal_block(Here& here, SizeClass c) noexcept;
  __attribute__((noinline)) Got last_resort(level::Slot* slot, SizeClass c, bool may_grow) noexcept;
  __attribute__((noinline)) Got cut_or_steal(level::Slot* slot, SizeClass c, bool may_grow) noexcept;

  // Large, rarely used members come first. The references follow together, since the loader writes them at each start.
  topology::Topology topology_;
  std::array<std::uint8_t, topology::max_llcs> node_of_processor_{};
  level::Depots objects_of_processors_[level::most_object_chunks], objects_of_nodes_[level::most_object_chunks];
  TransferCounters transfers_[max_size_classes];
  level::Locator locator_;
  Magazines magazines_;
  SlabLevel slab_level_;
  NodeLevel nodes_{slab_level_, objects_of_nodes_};
  ProcessorLevel processors_{slab_level_, objects_of_processors_};
  level::Levels<ProcessorLevel, NodeLevel, SlabLevel> above_slots_{processors_, nodes_, slab_level_};
  FastPathSwitch& fast_path_;
  Maintenance& maintenance_;
  os::RankedMutex<os::Rank::object_classes> objects_mutex_;  // making and removing classes of object caches
  CoreLevel core_;
};

}  // namespace terrace::heap
