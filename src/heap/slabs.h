// SPDX-License-Identifier: MIT OR Apache-2.0
// The global level for small blocks: slabs. What is known of a slab stands in its span's record, never in its blocks, so a slab
// that is free altogether can be purged.
#pragma once

#include "arch/chain.h"
#include "base/random.h"
#include "heap/placement.h"
#include "os/mutex.h"
#include "span/spans.h"

namespace terrace::heap {

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

  /// A chain of 1 to `want` blocks, lowest addresses first; empty when memory is short.
  ChainWord cut(HomeClass h, unsigned want) noexcept { return cut(h, want, true); }
  /// One block of a slab that is there already; empty when there is none.
  ChainWord cut_from_partial(HomeClass h) noexcept { return cut(h, 1, false); }
  /// Takes a chain apart. Every block is checked: a block that is free already, or that is none, ends the process.
  void put_back(ChainWord blocks) noexcept;
  /// Gives back the slabs that are entirely free, of which put_back() keeps one per class, and the free pages of the others.
  void trim() noexcept;

  /// At each tick, under the lock of maintenance.
  void fade() noexcept {
    small_.fade();
    bulky_.fade();
  }

  /// Start of the block that holds p; null when p points into no block. Requires that p lies in a slab.
  void* block_start(const void* p) const noexcept;

  /// Whether the block that starts at p is free in its slab; one in a level is not. While nobody else works on the slab.
  bool is_free(const void* block) const noexcept;

  const SlabCounters& counters(HomeClass h) const noexcept { return classes_[index(h)].counters; }

  void lock_all() noexcept;
  void unlock_all() noexcept;
  void reset_after_fork() noexcept;

 private:
  struct alignas(cache_line) Class {
    os::Mutex mutex;                                // rank: slabs
    span::GranuleIndex partial = span::no_granule;  // slabs with free blocks; those without their pages come last
    span::GranuleIndex partial_last = span::no_granule;
    std::uint32_t empty = 0;  // of these, entirely free
    std::uint32_t next_colour = 0;
    SlabCounters counters;
    Random random;  // hardened build
  };

  ChainWord cut(HomeClass h, unsigned want, bool may_grow) noexcept;
  void seed() noexcept;
  span::GranuleIndex make_slab(HomeClass h) noexcept;
  void release_slab(HomeClass h, span::GranuleIndex first) noexcept;
  void purge_free_pages(HomeClass h, span::GranuleIndex first) noexcept;
  bool wasteful(const span::Record& r) noexcept;
  std::uint64_t take_waste(span::Record& r, std::uint64_t bytes) noexcept;
  void link(Class& c, span::GranuleIndex first) noexcept;
  void link_last(Class& c, span::GranuleIndex first) noexcept;
  void unlink(Class& c, span::GranuleIndex first) noexcept;
  span::GranuleIndex slab_to_cut(Class& c, HomeClass h, bool may_grow) noexcept;
  unsigned gather(Class& c, span::Record& r, unsigned want, std::uint16_t* indices) noexcept;
  ChainWord put_back_leading(HomeClass h, span::GranuleIndex first, ChainWord blocks) noexcept;
  void settle(HomeClass h, span::GranuleIndex first) noexcept;
  span::Retention& retention(const Shape& s) noexcept { return s.stride > bulky ? bulky_ : small_; }
  const Shape& shape(HomeClass h) const noexcept { return (*shapes_)[index(class_of(h))]; }
  std::byte* first_block(span::GranuleIndex first) const noexcept {
    return spans_->window().address(first) + spans_->window().record(first).start;
  }

  /// Free blocks whose pages are resident, in bytes: an estimate, never less than what it stands for is worth purging.
  std::uint64_t waste() const noexcept { return waste_.read(); }

  span::Spans* spans_ = nullptr;
  SharedCounter waste_;
  // What free blocks in slabs may keep resident. Programs that use little memory are many on a machine; so what is regretted of
  // small blocks counts only beside much memory in use, of bulky ones (many faults each) always.
  static constexpr std::uint32_t bulky = 4 * kib;
  span::Retention small_{{.floor = 320 * kib, .small = 8 * mib, .share = 6, .ceiling = 256 * mib, .ceiling_share = 3}};
  span::Retention bulky_{{.floor = 0, .small = 8 * mib, .share = 3, .ceiling = 256 * mib}};
  const Shapes* shapes_ = nullptr;
  Class classes_[home_class_count];
};

}  // namespace terrace::heap
