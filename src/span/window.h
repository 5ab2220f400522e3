// SPDX-License-Identifier: MIT OR Apache-2.0
// The window: one range of addresses in which all spans lie, so that one subtraction tells ours from foreign and one byte per
// granule tells what its owner says of it. Nothing is reserved in advance: the window is a place, far from where the kernel
// puts mappings, and grows in steps at its frontier. That is why address-space limits (RLIMIT_AS, overcommit) cost nothing.
//
//      base - records - map        base - map          base                      frontier           base + 4 TiB
//      | records, one per granule  | byte per granule  | spans .................. | not mapped yet ...... |
//
// Who else maps memory in the window is an obstacle. The frontier goes behind it, however long it is, as long as the window has
// addresses there. The records of an obstacle can be read, and stay zero: State::unmapped.
//
// Where no such place exists, a range that the kernel chooses is reserved. Then only the metadata of that range is reserved,
// too.
#pragma once

#include "base/attributes.h"
#include "base/bits.h"
#include "base/counter.h"
#include "base/described.h"
#include "os/memory.h"
#include "span/granule.h"

#include <atomic>

namespace terrace {
class Random;
}

namespace terrace::span {

struct Places;

class Window {
 public:
  /// Finds a place and maps the first granules there, unless all of it is reserved: then `mapped` is 0. False: no addresses, or
  /// no memory, now. Before anything else, until it succeeds.
  bool open(std::uint32_t& mapped) noexcept;

  /// Maps at least `granules` more at the frontier; they are contiguous and zero. Their first index, or no_granule.
  /// Caller holds the lock of the span level.
  GranuleIndex grow(std::uint32_t granules, std::uint32_t& mapped) noexcept;

  /// The last step failed: memory is short. Caller as of grow().
  bool was_refused() const noexcept { return refused_; }

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
  /// A byte of the page map, for whoever has the span: what fast paths look up. It sets it back to 0 before it gives the span.
  std::uint8_t& owners_byte(GranuleIndex i) const noexcept { return map_[i]; }

  /// Gives the pages back that hold nothing but records of these granules, which read as zero then. To be called with the inner
  /// granules of a span that only the caller knows.
  void purge_records(GranuleIndex first, std::uint32_t granules) const noexcept;
  /// A range in it can not be used any more; what was mapped there is not counted. Caller as of grow().
  void lose(GranuleIndex first, std::uint32_t granules) noexcept;
  /// Whether pages may be moved from one span to another. Not among mappings that the kernel places: while pages are on their
  /// way, it might put somebody else's there.
  bool movable() const noexcept { return !reserved_; }

  std::uint64_t committed() const noexcept { return committed_.read(); }
  static constexpr std::size_t map_size = max_granules;

 private:
  friend struct introspect::Layout;
  os::Mapped open_anywhere(std::uint32_t& mapped) noexcept;
  os::Mapped open_among(const Places& places, Random& random, std::uint32_t& mapped) noexcept;
  os::Mapped claim(std::uint32_t& mapped) noexcept;
  void release_metadata() noexcept;
  void place_at(std::byte* base, std::byte* records) noexcept;
  bool open_reserved() noexcept;
  bool reserve(std::uint32_t granules) noexcept;
  os::Mapped extend_array(std::byte*& end, std::byte* used, std::byte* needed, bool adjacent) noexcept;
  TERRACE_INLINE os::Mapped extend_metadata(GranuleIndex first, std::uint32_t granules) noexcept;
  os::Mapped map_range(std::byte* from, std::byte* to, bool adjacent) noexcept;
  os::Mapped map_granules(GranuleIndex first, std::uint32_t granules) noexcept;
  void advance(GranuleIndex first, std::uint32_t granules) noexcept;
  GranuleIndex behind_obstacle(std::uint32_t granules) noexcept;

  std::byte* base_ = nullptr;
  std::uint8_t* map_ = nullptr;
  Record* records_ = nullptr;
  std::uint32_t limit_ = 0;       // granules that the window may have
  std::uint32_t frontier_ = 0;    // granules mapped, or skipped as obstacles
  std::byte* map_end_ = nullptr;  // metadata is mapped up to here
  std::byte* records_end_ = nullptr;
  std::byte* kept_ = nullptr;  // reserved by a look behind an obstacle
  bool reserved_ = false;      // the kernel chose the place and all of it is reserved
  bool locked_ = false;        // mlockall: what the last step mapped was there at once
  bool refused_ = false;       // the last step, so that the next one is no longer than is needed
  std::atomic<std::size_t> extent_{0};
  LockedCounter committed_;
};

}  // namespace terrace::span
