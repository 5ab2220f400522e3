// SPDX-License-Identifier: MIT OR Apache-2.0
// The window: one range of addresses in which all blocks lie, so that one subtraction tells ours from foreign and one byte per
// granule tells the class. Nothing is reserved in advance: the window is a place, far from where the kernel puts mappings, and
// grows in steps at its frontier. That is why address-space limits (RLIMIT_AS, overcommit) cost nothing.
//
//      base - records - map        base - map          base                      frontier           base + 1 TiB
//      | records, one per granule  | byte per granule  | blocks ................. | not mapped yet ...... |
#pragma once

#include "base/bits.h"
#include "base/counter.h"
#include "span/granule.h"

#include <atomic>

namespace terrace::span {

class Window {
 public:
  /// Finds a place. False: no address space at all. Call once, before anything else.
  bool open() noexcept;

  /// Maps at least `granules` more at the frontier; they are contiguous and zero. Their first index, or no_granule.
  /// Caller holds the lock of the span level.
  GranuleIndex grow(std::uint32_t granules, std::uint32_t& mapped) noexcept;

  std::byte* base() const noexcept { return base_; }
  /// Bytes from base() that may be looked up; only grows.
  std::size_t extent() const noexcept {
    // [W1] acquire, pairs with the release in grow(): the map and records below it are mapped.
    return extent_.load(std::memory_order_acquire);
  }
  bool contains(const void* p) const noexcept { return address_of(p) - address_of(base_) < extent(); }

  GranuleIndex index_of(const void* p) const noexcept {
    return static_cast<GranuleIndex>((address_of(p) - address_of(base_)) >> granule_shift);
  }
  std::byte* address(GranuleIndex i) const noexcept { return base_ + (std::size_t{i} << granule_shift); }
  Record& record(GranuleIndex i) const noexcept { return records_[i]; }
  /// The byte that the fast path of free looks up; 0: no small block lies here.
  std::uint8_t& class_byte(GranuleIndex i) const noexcept { return map_[i]; }

  std::uint64_t committed() const noexcept { return committed_.read(); }
  static constexpr std::size_t map_size = max_granules;

 private:
  bool open_anywhere() noexcept;
  bool open_reserved() noexcept;
  bool extend_metadata(std::uint32_t frontier) noexcept;
  bool map_range(std::byte* from, std::byte* to) noexcept;
  void place_at(std::byte* base) noexcept;

  std::byte* base_ = nullptr;
  std::uint8_t* map_ = nullptr;
  Record* records_ = nullptr;
  std::uint32_t limit_ = 0;       // granules that the window may have
  std::uint32_t frontier_ = 0;    // granules mapped, or skipped as obstacles
  std::byte* map_end_ = nullptr;  // metadata is mapped up to here
  std::byte* records_end_ = nullptr;
  bool reserved_ = false;  // the kernel chose the place and all of it is reserved
  std::atomic<std::size_t> extent_{0};
  LockedCounter committed_;
};

}  // namespace terrace::span
