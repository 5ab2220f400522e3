// SPDX-License-Identifier: MIT OR Apache-2.0
// The global level for small blocks: slabs. The record of a slab lies in the owner's part of its span's record, never in its
// blocks, so an entirely free slab can be purged.
//
// Invariants of resident and purged pages, while the class is not locked:
//   W1  a sector of a slab whose bit is set in SlabRecord::purged holds no pages and no part of a block in use
//   W2  Waste::holes = blocks that lie in purged sectors
//   W3  waste() = sum over slabs of Waste::counted * stride
//   W4  resident_ = sum over slabs of (blocks - holes) * stride
//   W5  a slab is in its node's `resident` if some of its waste is counted, else in `bare` if it has free blocks, else in no
//       list
// check_invariants() checks them. A free block that is no hole is resident. It can not be given back while it shares a page
// with a block in use: a check of the slab marks such blocks stuck. They stay uncounted until a quarter of the blocks in use
// has been freed (one block, if fewer are left than the slab has pages), or a tick of maintenance checks slabs with freed
// blocks again.
#pragma once

#include "base/attributes.h"
#include "base/described.h"
#include "base/random.h"
#include "heap/classes/object_classes.h"
#include "heap/classes/page_values.h"
#include "heap/classes/placement.h"
#include "heap/classes/span_owners.h"
#include "level/magazine.h"
#include "os/mutex.h"
#include "span/spans.h"

namespace terrace::heap {

/// Counts of a slab's free blocks by what their pages hold. See [W].
struct Waste {
  std::uint16_t holes;    // free, and in a purged sector
  std::uint16_t stuck;    // resident at the last check of the slab, but sharing pages with blocks in use
  std::uint16_t looked;   // blocks in use at the last check, or the maximum since
  std::uint16_t counted;  // resident and perhaps purgeable: in the sum of all slabs
};

/// Its home class is the owner's byte of the window at each of its granules. All fields under the lock of that class, but what
/// never changes while the slab is one: block_offset, block_count.
struct SlabRecord {
  span::GranuleIndex next, previous;  // in one of the class's lists
  Waste waste;
  std::uint16_t block_offset;  // of the first block in the slab: its colour
  std::uint16_t block_count;   // how many fit
  std::uint16_t free_blocks;   // how many of them are free
  std::uint8_t list;           // Slabs::In
  std::uint8_t scan;           // no block is free in the words of free_map before this one
  std::uint64_t purged;        // one bit per sector (heap/slabs/sectors.h), set = its pages are given back
  std::uint64_t free_map[64];  // one bit per block, set = free. 4096 blocks of 16 bytes fit into one granule
};
static_assert(sizeof(SlabRecord) == span::owners_part_size);
struct SlabCounters {  // under the class's lock
  LockedCounter cut, returned, slabs_made, slabs_released;
  LockedCounter purged_bytes;  // of slabs that are still in use
};

class Slabs {
 public:
  void open(span::Spans& spans, const Shapes& shapes) noexcept {
    spans_ = &spans;
    shapes_ = &shapes;
    seed();
  }
  /// Called on machines of several NUMA nodes before the first cut: a thread then gets blocks of slabs that its own node has
  /// made, whose pages lie there. False: no memory for their lists.
  bool bind_to_nodes(unsigned nodes) noexcept;

  /// Writes the addresses of 1 to `want` blocks, the lowest last; how many. 0 when memory is short. Requires 0 < want <= most.
  unsigned cut(HomeClass h, unsigned want, std::uint64_t* blocks, unsigned node = 0) noexcept {
    return cut(h, want, blocks, true, node);
  }
  /// One block, or null. Unless it may grow, of a slab that is there already.
  void* cut_one(HomeClass h, bool may_grow, unsigned node = 0) noexcept {
    std::uint64_t block = 0;
    return cut(h, 1, &block, may_grow, node) == 0 ? nullptr : pointer_to(block);
  }
  /// Blocks of one home class. Every block is checked: one that is free already, or that is none, ends the process.
  void put_back(const std::uint64_t* blocks, unsigned n) noexcept;
  void put_back_one(HomeClass h, void* block) noexcept {
    const std::uint64_t at = address_of(block);
    put_back(h, &at, 1);
  }
  /// Gives back the entirely free slabs (put_back() keeps one of a granule per class) and the free pages of the others.
  void trim() noexcept;
  void trim(HomeClass h) noexcept;
  /// As trim(), from slab to slab, but only until waste() is no more than `bytes`, and of pages that are known to be free.
  void purge_down_to(std::uint64_t bytes) noexcept;
  /// At each tick, under the lock of maintenance: the allowance for refaults fades, and what exceeds what may be kept goes.
  void tick() noexcept;

  /// Upper bound of resident free bytes that a system call could give back.
  std::uint64_t waste() const noexcept { return waste_.read(); }
  /// Bytes of free blocks that share pages with cut blocks; not in waste().
  std::uint64_t pinned() const noexcept {
    const std::uint64_t others = in_use_bytes() + waste_.read();
    return resident_.read() - min_of(resident_.read(), others);
  }
  /// Blocks that have returned to the slabs so far. A walk over all classes.
  std::uint64_t returned() noexcept;
  /// Blocks that were cut and have not returned.
  std::uint64_t in_use_bytes() const noexcept { return spans_->cut_bytes(); }

  /// Whether a block starts at p, which lies in granule i, in a slab of class h.
  TERRACE_INLINE bool is_block(const void* p, span::GranuleIndex i, HomeClass h) const noexcept {
    // Modulo 2^64: also of what lies before the first block.
    return (*shapes_)[index(class_of(h))].begins_at(address_of(p) - address_of(first_block(spans_->window().record(i).first)));
  }
  bool is_block(const void* p) const noexcept {
    const span::GranuleIndex i = spans_->window().index_of(p);
    return is_block(p, i, HomeClass{spans_->window().owners_byte(i)});
  }

  /// Requires a pointer into the window. Class 0: not in a slab of malloc's blocks.
  HomeClass home_class_of(const void* p) const noexcept {
    const HomeClass h = HomeClass{spans_->window().owners_byte(spans_->window().index_of(p))};
    return block_values.has(index(h)) ? h : HomeClass{};
  }
  /// The same, with the classes of object caches.
  HomeClass any_class_of(const void* p) const noexcept {
    const HomeClass h = home_at_granule(spans_->window().index_of(p));
    return block_values.has(index(h)) || is_object(h) ? h : HomeClass{};
  }
  /// Of a magazine that holds blocks: the word it lies in may be that of home 0.
  HomeClass home_of(level::Magazine m) const noexcept { return any_class_of(pointer_to(*m.begin())); }
  /// The slab that the calling thread has made last, once; null: none, or not of that class.
  const void* take_made_slab(HomeClass h) const noexcept;

  /// Of a class of object caches, whether p is one of its blocks.
  bool is_object_of(HomeClass h, const void* p) const noexcept {
    if (!spans_->window().contains(p)) return false;
    const span::GranuleIndex i = spans_->window().index_of(p);
    return home_at_granule(i) == h &&
           shape(h).begins_at(address_of(p) - address_of(first_block(spans_->window().record(i).first)));
  }

  /// Of p that lies in a slab of class h: where the block begins that holds it; null when none does.
  const void* block_holding(HomeClass h, const void* p) const noexcept;

  /// Classes of object caches. False: there is no memory for a chunk of them.
  bool open_objects(unsigned chunk) noexcept;
  /// Gives back the entirely free slabs of a class. True: all were free.
  bool release_all(HomeClass h) noexcept;

  /// Whether the block at p is free in its slab (a block in a level is not). Requires that no other thread works on the slab.
  bool is_free(const void* block) const noexcept;

  const SlabCounters& counters(HomeClass h) const noexcept { return class_at(h).counters; }
  /// Bytes of all slabs of a class.
  std::uint64_t bytes_of_slabs(HomeClass h) const noexcept {
    const SlabCounters& c = counters(h);
    return (c.slabs_made.read() - c.slabs_released.read()) * shape(h).granules * span::granule_size;
  }

  std::size_t slab_bytes(SizeClass c) const noexcept { return (*shapes_)[index(c)].granules * span::granule_size; }

  /// The invariant that does not hold, in words; null when all do. For tests: a walk over all slabs, which nobody else uses.
  const char* check_invariants() noexcept;

  void lock_all() noexcept;
  void unlock_all() noexcept;
  /// In a forked child, which has one thread: nothing is locked, and what other threads were about to give back is in the slabs
  /// again.
  void reset_after_fork() noexcept;

 private:
  friend struct introspect::Layout;
  enum class In : std::uint8_t { none, resident, bare };  // SlabRecord::list
  struct List {
    span::GranuleIndex first = span::no_granule, last = span::no_granule;
  };
  struct Lists {
    List resident;  // slabs with counted waste, the one that got it last in front
    List bare;      // other slabs with free blocks
  };
  /// What purge_free_pages() has taken out of a slab, for a child that is forked meanwhile: under the class's lock.
  struct Leaving {
    std::uint64_t sectors = 0;  // 0: nothing
    const void* thread = nullptr;
    span::GranuleIndex slab = 0;
  };
  static constexpr std::size_t most_leaving = 2;
  struct alignas(cache_line) Class {
    os::RankedMutex<os::Rank::slabs> mutex;
    Lists lists;              // of node 0
    std::uint32_t empty = 0;  // slabs that are entirely free
    std::uint32_t next_colour = 0;
    SlabCounters counters;
    Leaving leaving[most_leaving];
    Random random;  // hardened build
  };

  unsigned cut(HomeClass h, unsigned want, std::uint64_t* blocks, bool may_grow, unsigned node) noexcept;
  void put_back(HomeClass h, const std::uint64_t* blocks, unsigned n) noexcept;
  // slabs.cpp
  void seed() noexcept;
  span::GranuleIndex make_slab(HomeClass h, unsigned node) noexcept;
  bool is_short_for_slab(HomeClass h) const noexcept;
  // Not of magazines, which frees need.
  static bool is_for_program(HomeClass h) noexcept { return block_values.has(index(h)) || is_object(h); }
  void on_take(HomeClass h) noexcept {
    if (is_for_program(h)) spans_->on_take();
  }
  __attribute__((noinline)) void begin_slab(HomeClass h, const span::Spans::Span& found) noexcept;
  void release_slab(HomeClass h, span::GranuleIndex first) noexcept;
  TERRACE_INLINE span::GranuleIndex slab_to_cut(HomeClass h, bool may_grow, unsigned node) noexcept;
  span::GranuleIndex slab_of_any_node(HomeClass h) noexcept;
  __attribute__((noinline)) unsigned cut_from(HomeClass h, span::GranuleIndex first, unsigned want,
                                              std::uint64_t* blocks) noexcept;
  unsigned gather(Class& c, SlabRecord& r, unsigned want, std::uint64_t* numbers) noexcept;
  void prefetch_records(const Shape& s, const std::uint64_t* blocks, unsigned n) const noexcept;
  unsigned put_back_leading(HomeClass h, span::GranuleIndex first, const std::uint64_t* blocks, unsigned n) noexcept;
  [[noreturn]] void report_no_slab(const void* block) noexcept;
  void settle(HomeClass h, span::GranuleIndex first) noexcept;

  // check.cpp
  struct Met;
  const char* check_class(HomeClass h, const Met& met) noexcept;
  const char* check_slab(span::GranuleIndex first) const noexcept;
  std::uint64_t listed(const List& list, In in) noexcept;

  // waste.cpp; the class is locked, purge_free_pages() drops the lock in between
  static std::uint32_t resident_blocks(const SlabRecord& r) noexcept {
    return r.free_blocks - min_of<std::uint32_t>(r.free_blocks, r.waste.holes);
  }
  void enter(HomeClass h, span::GranuleIndex first, In list) noexcept;
  void leave(HomeClass h, span::GranuleIndex first) noexcept;
  __attribute__((noinline)) void count_holes(HomeClass h, SlabRecord& r) noexcept;
  void fill_holes(HomeClass h, SlabRecord& r, const std::uint64_t* numbers, unsigned n) noexcept;
  void count_waste(HomeClass h, span::GranuleIndex first, bool all = false) noexcept;
  bool wasteful(HomeClass h, const SlabRecord& r) noexcept;
  __attribute__((noinline)) std::uint64_t unused_sectors(HomeClass h, const SlabRecord& r) const noexcept;
  struct Gone {
    std::uint64_t sectors = 0, bytes = 0;
  };
  __attribute__((noinline)) Gone purge_sectors(HomeClass h, span::GranuleIndex first, std::uint64_t mask) noexcept;
  __attribute__((noinline)) void count_purged(HomeClass h, span::GranuleIndex first, Gone gone) noexcept;
  __attribute__((noinline)) void purge_free_pages(HomeClass h, span::GranuleIndex first) noexcept;
  void purge_slab(HomeClass h, span::GranuleIndex first) noexcept;
  __attribute__((noinline)) std::uint32_t take_out(HomeClass h, span::GranuleIndex first, std::uint64_t sectors) noexcept;
  __attribute__((noinline)) std::uint32_t put_in(HomeClass h, span::GranuleIndex first, std::uint64_t sectors) noexcept;
  static Leaving* unused_leaving(Class& c) noexcept;
  void repair_in_child(HomeClass h) noexcept;
  void purge_class(HomeClass h, std::uint64_t bytes) noexcept;
  template <class Body>
  void for_each_bare(HomeClass h, Body body) noexcept;
  void look_again(HomeClass h, bool all) noexcept;

  Class& class_at(HomeClass h) noexcept {
    if (!is_object(h)) return classes_[index(h)];
    return object_classes_[ObjectClasses::chunk(h)][ObjectClasses::within(h)];
  }
  const Class& class_at(HomeClass h) const noexcept { return const_cast<Slabs*>(this)->class_at(h); }
  /// Calls body(h) for each class.
  template <class Body>
  void for_each_class(Body body) noexcept {
    for (std::size_t h = 1; h < slab_class_count; ++h) body(home_at(h));
    object_classes.for_each(body);
  }
  Lists& lists(HomeClass h, unsigned node) noexcept {
    return node == 0 || is_object(h) ? class_at(h).lists : more_lists_[(node - 1) * slab_class_count + index(h)];
  }
  List& list_of(HomeClass h, unsigned node, In in) noexcept {
    Lists& l = lists(h, node);
    return in == In::resident ? l.resident : l.bare;
  }
  /// Of the slab's own node.
  List& list(HomeClass h, span::GranuleIndex slab, In in) noexcept {
    return list_of(h, spans_->window().record(slab).node % span::most_nodes, in);
  }
  static constexpr bool has_own_pages(const Shape& s) noexcept { return s.stride >= bulky; }
  const Shape& shape(HomeClass h) const noexcept {
    if (is_object(h)) return object_classes[h].shape;
    return magazine_values.has(index(h)) ? magazine_shapes[index(h) - magazine_values.first] : (*shapes_)[index(class_of(h))];
  }
  HomeClass home_at_granule(span::GranuleIndex i) const noexcept {
    const std::uint8_t value = spans_->window().owners_byte(i);
    if (!object_values.has(value)) return HomeClass{value};
    return home_at(spans_->window().record(spans_->window().record(i).first).number);
  }
  SlabRecord& slab(span::GranuleIndex first) const noexcept { return spans_->window().record(first).owners_part<SlabRecord>(); }
  static void* pointer_to(std::uint64_t address) noexcept {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): as a magazine holds it
  }
  std::byte* first_block(span::GranuleIndex first) const noexcept {
    return spans_->window().address(first) + slab(first).block_offset;
  }

  static constexpr std::uint32_t bulky = 4 * kib;  // from here on a block costs faults of its own

  span::Spans* spans_ = nullptr;
  const Shapes* shapes_ = nullptr;
  unsigned nodes_ = 1;           // of whoever cuts modulo span::most_nodes is below it
  Lists* more_lists_ = nullptr;  // of the other nodes
  // All threads write these, and only read those above.
  alignas(cache_line) SharedCounter waste_;
  SharedCounter resident_;
  span::Refaults refaults_{span::Spans::most_refaulted};
  std::uint32_t hand_ = 0;  // of purge_down_to(), over classes; whose caller sees to it that there is only one
  Class classes_[slab_class_count];
  std::array<Class*, level::most_object_chunks> object_classes_{};
};

}  // namespace terrace::heap
