// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/window.h"

#include "base/assert.h"
#include "base/random.h"
#include "os/metadata.h"
#include "os/secret.h"

#include <initializer_list>

namespace terrace::span {

// Where a window may lie: behind the program's own addresses at the bottom, below the program break of a position-independent
// program (two thirds of all addresses) and the mapping area (at their top; without a limit on the stack from a third on).
// Nobody is put there unasked.
struct Places {
  std::uintptr_t lowest;
  std::uint32_t count;  // place_step apart
  std::uintptr_t end;   // of the addresses that a process has
};

namespace {

[[maybe_unused]] constexpr std::uintptr_t place_step = std::uintptr_t{1} << 32;
[[maybe_unused]] constexpr Places all_places[] = {
    {std::uintptr_t{1} << 44, 5632,
     std::uintptr_t{1} << 47},                                // x86-64, aarch64 with 48 bits: the last window ends below 0x2a..
    {std::uintptr_t{1} << 40, 128, std::uintptr_t{1} << 42},  // aarch64 with 42 bits
    {std::uintptr_t{1} << 36, 16, std::uintptr_t{1} << 39},   // and with 39 bits
};
[[maybe_unused]] constexpr int attempts_per_distance = 8;

constexpr std::uint32_t largest_reservation = 1U << 22;  // granules: 256 GiB
constexpr std::uint32_t smallest_reservation = 256;      // granules: 16 MiB
constexpr std::uint32_t min_step = 64, max_step = 1024;  // granules: 4 MiB, 64 MiB
constexpr std::size_t records_size = std::size_t{max_granules} * sizeof(Record);

}  // namespace

bool Window::open(std::uint32_t& mapped) noexcept {
  mapped = 0;
  if (limit_ != 0) return true;  // what was opened after it failed
  const os::Mapped result = open_anywhere(mapped);
  if (result == os::Mapped::yes) return true;
  limit_ = 0;
  return result == os::Mapped::occupied && open_reserved();
}

// Refused: there are such addresses, and no memory.
os::Mapped Window::open_anywhere([[maybe_unused]] std::uint32_t& mapped) noexcept {
#if !defined(TERRACE_SANITIZED)  // sanitizers tolerate mappings only where the kernel puts them
  Random random;
  random.seed(os::process_secret(address_of(this)));  // another heap in the process looks elsewhere
  for (const Places& places : all_places) {
    const os::Mapped result = open_among(places, random, mapped);
    if (result == os::Mapped::yes) return result;
    if (result != os::Mapped::refused) continue;
    const os::Mapped exists = os::look_at(base_, os::page_size());
    if (exists == os::Mapped::yes || exists == os::Mapped::kept) return result;
  }
#endif
  return os::Mapped::occupied;
}

// As far from everything else as there is such a place: another heap's window will grow, and so will what lies below its base.
// Where the kernel does not tell what is vacant, the distance is left to chance. Refused: nothing is at the last place.
os::Mapped Window::open_among(const Places& places, Random& random, std::uint32_t& mapped) noexcept {
  constexpr std::size_t metadata = map_size + records_size;
  for (std::uintptr_t distance = std::uintptr_t{max_granules} << granule_shift; distance >= place_step / 2; distance /= 2) {
    for (int i = 0; i < attempts_per_distance; ++i) {
      const std::uintptr_t place = places.lowest + random.below(places.count) * place_step;
      const std::uintptr_t from = place - metadata - min_of(distance, place - metadata);
      if (!os::is_vacant(pointer_to(from), min_of(place + distance, places.end) - from)) continue;
      limit_ = static_cast<std::uint32_t>(min_of<std::uintptr_t>(max_granules, (places.end - place) >> granule_shift));
      place_at(pointer_to(place), pointer_to(place - metadata));
      const os::Mapped result = claim(mapped);
      if (result != os::Mapped::occupied) return result;
    }
  }
  return os::Mapped::occupied;
}

// Whoever maps first has the place.
os::Mapped Window::claim(std::uint32_t& mapped) noexcept {
  for (const std::uint32_t granules : {min_step, 1U}) {
    const os::Mapped result = map_granules(0, granules);
    if (result == os::Mapped::yes) {
      advance(0, granules);
      mapped = granules;
    } else {
      release_metadata();
    }
    if (result != os::Mapped::refused || granules == 1) return result;
  }
  return os::Mapped::refused;
}

// Of a window that has no granules.
void Window::release_metadata() noexcept {
  std::byte *const map = reinterpret_cast<std::byte*>(map_), *const records = reinterpret_cast<std::byte*>(records_);
  const auto bytes = static_cast<std::size_t>((map_end_ - map) + (records_end_ - records));
  if (map_end_ != map) os::release(map, static_cast<std::size_t>(map_end_ - map));
  if (records_end_ != records) os::release(records, static_cast<std::size_t>(records_end_ - records));
  os::count_metadata(os::Metadata::spans, std::uint64_t{0} - bytes);
  place_at(base_, records);
}

bool Window::open_reserved() noexcept {
  reserved_ = true;
  for (std::uint32_t granules = largest_reservation; granules >= smallest_reservation; granules /= 2) {
    if (reserve(granules)) return true;
  }
  return false;
}

// The byte map keeps its distance from base, which the fast path knows. The records need not, and lie behind the map where they
// fit below base. What is between is given back. Half as much as the spans get stays free: stacks need addresses as well.
bool Window::reserve(std::uint32_t granules) noexcept {
  const std::size_t page = os::page_size();
  const std::size_t map = round_up(std::size_t{granules}, page);
  const std::size_t records = round_up(granules * sizeof(Record), page);
  const bool below_base = map + records <= map_size;
  const std::size_t metadata = below_base ? map_size : map_size + records;
  const std::size_t spans = std::size_t{granules} << granule_shift;
  const std::size_t bytes = spans + granule_size + max_of(metadata, map + records + spans / 2);
  auto* const start = static_cast<std::byte*>(os::reserve(bytes, nullptr));
  if (start == nullptr) return false;
  std::byte* const base = pointer_to(round_up(address_of(start) + metadata, granule_size));
  const auto release = [](std::byte* from, std::byte* to) {
    if (from < to) os::release(from, static_cast<std::size_t>(to - from));
  };
  release(start, base - metadata);
  release(base - map_size + map + (below_base ? records : 0), base);
  release(base + spans, start + bytes);
  limit_ = granules;
  place_at(base, below_base ? base - map_size + map : base - metadata);
  return true;
}

void Window::place_at(std::byte* base, std::byte* records) noexcept {
  base_ = base;
  map_ = reinterpret_cast<std::uint8_t*>(base - map_size);
  records_ = reinterpret_cast<Record*>(records);
  map_end_ = reinterpret_cast<std::byte*>(map_);
  records_end_ = reinterpret_cast<std::byte*>(records_);
}

// `adjacent`: what ends at `from` is ours and was mapped in the same way.
os::Mapped Window::map_range(std::byte* from, std::byte* to, bool adjacent) noexcept {
  const auto bytes = static_cast<std::size_t>(to - from);
  if (reserved_ || from == kept_) return os::commit(from, bytes) ? os::Mapped::yes : os::Mapped::refused;
  return adjacent ? os::map_behind(from, bytes) : os::map_at(from, bytes);
}

// Lengthens an array that is mapped up to `end`; [used, needed) will be written. What is before belongs to an obstacle: it can
// be read, so that any address in the window may be looked up, and takes no memory, whatever the rule of overcommitment.
os::Mapped Window::extend_array(std::byte*& end, std::byte* used, std::byte* needed, bool adjacent) noexcept {
  const std::size_t page = os::page_size();
  needed = pointer_to(round_up(address_of(needed), page));
  if (needed <= end) return os::Mapped::yes;
  used = max_of(end, static_cast<std::byte*>(pointer_to(address_of(used) / page * page)));
  const auto skipped = static_cast<std::size_t>(used - end);
  os::Mapped result = skipped == 0 ? os::Mapped::yes : os::map_zeroes(end, skipped);
  if (result != os::Mapped::yes) return result;
  result = map_range(used, needed, adjacent && skipped == 0);
  if (result != os::Mapped::yes) {
    if (skipped != 0) os::release(end, skipped);
    return result;
  }
  os::count_metadata(os::Metadata::spans, static_cast<std::uint64_t>(needed - used));
  end = needed;
  return result;
}

os::Mapped Window::extend_metadata(GranuleIndex first, std::uint32_t granules) noexcept {
  const GranuleIndex end = first + granules;
  const auto bytes = [](auto* p) { return reinterpret_cast<std::byte*>(p); };
  const os::Mapped result = extend_array(map_end_, bytes(map_ + first), bytes(map_ + end), map_end_ != bytes(map_));
  if (result != os::Mapped::yes) return result;
  return extend_array(records_end_, bytes(records_ + first), bytes(records_ + end), records_end_ != bytes(records_));
}

// The granules first: who asks for terabytes is refused before metadata is mapped for them.
os::Mapped Window::map_granules(GranuleIndex first, std::uint32_t granules) noexcept {
  const bool adjacent = first == frontier_ && first != 0 && record(first - 1).state != State::unmapped;
  os::Mapped result = map_range(address(first), address(first + granules), adjacent);
  if (result != os::Mapped::yes) return result;
  result = extend_metadata(first, granules);
  if (result == os::Mapped::yes) return result;
  if (!reserved_) os::release(address(first), std::size_t{granules} << granule_shift);
  return frontier_ == 0 ? result : os::Mapped::refused;  // the metadata of a window that has begun can not go elsewhere
}

// At the frontier is not room for `granules`. Steps of doubled length find where there is, then halving finds the first such
// place: the obstacle's end, if it is one. Twice the logarithm of its length in system calls; no memory is mapped. Where a
// place can not be unmapped after the look at it, it is the one.
GranuleIndex Window::behind_obstacle(std::uint32_t granules) noexcept {
  const auto look = [this, granules](GranuleIndex i) {
    const os::Mapped result = os::look_at(address(i), std::size_t{granules} << granule_shift);
    if (result == os::Mapped::kept) kept_ = address(i);
    return result;
  };
  const GranuleIndex last = limit_ - granules;
  GranuleIndex occupied = frontier_, vacant = no_granule;
  for (std::uint32_t reach = 1; vacant == no_granule; reach *= 2) {
    if (occupied == last) return no_granule;
    const GranuleIndex next = reach < last - frontier_ ? frontier_ + reach : last;
    const os::Mapped result = look(next);
    if (result == os::Mapped::refused) return no_granule;
    if (result == os::Mapped::kept) return next;
    (result == os::Mapped::yes ? vacant : occupied) = next;
  }
  while (vacant - occupied > 1) {
    const GranuleIndex middle = occupied + (vacant - occupied) / 2;
    const os::Mapped result = look(middle);
    if (result == os::Mapped::kept) return middle;
    (result == os::Mapped::yes ? vacant : occupied) = middle;
  }
  return vacant;
}

GranuleIndex Window::grow(std::uint32_t granules, std::uint32_t& mapped) noexcept {
  if (frontier_ >= limit_ || granules > limit_ - frontier_) return no_granule;
  const std::uint32_t step = locked_ || refused_ ? granules : min_of(max_of(frontier_ / 8, min_step), max_step);
  const std::uint32_t wanted = min_of(max_of(granules, step), limit_ - frontier_);
  GranuleIndex first = frontier_;
  mapped = wanted;
  os::Mapped result = map_granules(first, mapped);
  if (result != os::Mapped::yes && wanted > granules) {  // perhaps a limit or an obstacle is near: only what is needed
    mapped = granules;
    result = map_granules(first, mapped);
  }
  if (result == os::Mapped::occupied) {
    first = behind_obstacle(granules);
    if (first == no_granule) return no_granule;
    mapped = granules;
    result = map_granules(first, mapped);
  }
  refused_ = result != os::Mapped::yes;
  if (refused_) return no_granule;
  advance(first, mapped);
  std::byte* const spare = address(first + granules);
  locked_ = os::is_locked(spare - os::page_size(), os::page_size());
  if (locked_ && mapped > granules) os::purge(spare, std::size_t{mapped - granules} << granule_shift);
  return first;
}

void Window::advance(GranuleIndex first, std::uint32_t granules) noexcept {
  TERRACE_ASSERT(first >= frontier_ && first + granules <= limit_, "window: the frontier goes back, or beyond the limit");
  TERRACE_ASSERT(map_end_ >= reinterpret_cast<std::byte*>(map_ + first + granules) &&
                     records_end_ >= reinterpret_cast<std::byte*>(records_ + first + granules),
                 "window: granules below the frontier have no metadata");
  frontier_ = first + granules;
  committed_.add(std::uint64_t{granules} << granule_shift);
  extent_.store(std::size_t{frontier_} << granule_shift, std::memory_order_release);  // [W1]
}

void Window::purge_records(GranuleIndex first, std::uint32_t granules) const noexcept {
  const std::size_t page = os::page_size();
  const std::uintptr_t from = round_up(address_of(records_ + first), page);
  const std::uintptr_t to = address_of(records_ + first + granules) / page * page;
  if (from < to) os::purge(pointer_to(from), to - from);
}

void Window::lose(GranuleIndex first, std::uint32_t granules) noexcept {
  for (std::uint32_t g = 0; g < granules; ++g) record(first + g).state = State::unmapped;
  committed_.add(std::uint64_t{0} - (std::uint64_t{granules} << granule_shift));
}

}  // namespace terrace::span
