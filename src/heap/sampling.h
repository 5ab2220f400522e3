// SPDX-License-Identifier: MIT OR Apache-2.0
// Which allocations the heap profiler samples, and how their blocks are told from others.
//
// Each allocation of a class is either popped from a slot's magazine, which counts it, or it takes the slow path. The first are
// sampled when their counter reaches 0, which was set to minus the number of the first that is to be sampled; the others are
// drawn one by one. Both are the same draw (profile/draw.h), so whether a block goes round within a slot or comes from far away
// does not matter.
//
// A sampled block has a span of its own, as large blocks have: so the page map says "no small block", and free takes the slow
// path by itself. There the large block's record has the sample's number. The block is as long as others of its class. Objects
// of caches are drawn and told in the same way; what a cache does to them is umem/cache.cpp's.
#pragma once

#include "heap/large/large.h"
#include "heap/levels/block_levels.h"
#include "profile/profiler.h"

namespace terrace::heap {

class Sampling {
 public:
  constexpr Sampling(BlockLevels& levels, Large& large) noexcept : levels_(levels), large_(large) {}
  static bool on() noexcept { return profile::profiler.on(); }

  /// Whether the calling thread's slot stands before the allocation that is to be sampled, or has no count that says so. Of
  /// classes of blocks.
  bool is_due(SizeClass c) noexcept;
  /// For an allocation that found no block at hand: its block, if it is sampled and there is memory; else null.
  __attribute__((cold, noinline)) void* allocate(SizeClass c, std::size_t size, std::size_t align) noexcept;
  /// Of a large block, which was just allocated.
  __attribute__((cold, noinline)) void look_at(void* p, std::size_t size) noexcept;
  /// Of a large block: the class of the sampled object that it stands for; 0: none.
  SizeClass object_class_of(const void* p) noexcept {
    const std::uint32_t sample = large_.sample_of(p);
    return SizeClass{sample == 0 ? std::uint16_t{0} : profile::profiler.table().at(sample).object_class};
  }
  /// The block is about to be freed. Requires a large block.
  void drop(void* p) noexcept {
    if (large_.sample_of(p) != 0) [[unlikely]]
      drop_sample(p);
  }
  /// Whether realloc leaves a sampled block where it is, as it would leave another of its class.
  bool stays(const void* p, std::size_t size) noexcept { return large_.sample_of(p) != 0 && resize(p, size); }
  /// realloc has made another large block of one that had that sample, or none.
  void reallocated(void* p, std::size_t size, std::uint32_t sample) noexcept {
    if (on() || sample != 0) [[unlikely]]
      look_again(p, size, sample);
  }

 private:
  __attribute__((cold, noinline)) void drop_sample(void* p) noexcept;
  __attribute__((cold, noinline)) bool resize(const void* p, std::size_t size) noexcept;
  __attribute__((cold, noinline)) void look_again(void* p, std::size_t size, std::uint32_t sample) noexcept;
  bool is_armed(level::Slot& slot, SizeClass c, std::uint64_t word) noexcept;
  bool count_is_over(SizeClass c, std::uint64_t word) noexcept;
  void arm(level::Slot& slot, SizeClass c, std::uint64_t period) noexcept;

  BlockLevels& levels_;
  Large& large_;
};

}  // namespace terrace::heap
