// SPDX-License-Identifier: MIT OR Apache-2.0
#include "span/window.h"

#include "os/auxv.h"
#include "os/memory.h"

#include <elf.h>

namespace terrace::span {
namespace {

// Below the program break (0x55..) and the mapping area (0x7f..) of x86-64 and aarch64: nobody is put there unasked.
[[maybe_unused]] constexpr std::uintptr_t lowest_place = std::uintptr_t{0x10} << 40;
[[maybe_unused]] constexpr std::uintptr_t place_step = std::uintptr_t{1} << 32;
[[maybe_unused]] constexpr unsigned places = 1536;  // up to 0x16.., so that the last window ends below 0x18..
[[maybe_unused]] constexpr int place_attempts = 4;

constexpr std::uint32_t smallest_reservation = 256;      // granules: 16 MiB
constexpr std::uint32_t min_step = 64, max_step = 1024;  // granules: 4 MiB, 64 MiB
constexpr std::uint32_t obstacle_skip = 1U << 14;        // granules: 1 GiB
constexpr std::size_t records_size = std::size_t{max_granules} * sizeof(Record);

[[maybe_unused]] std::uint64_t random_bits() noexcept {
  const unsigned long address = os::auxiliary_value(AT_RANDOM);
  if (address == 0) return 0;
  std::uint64_t bits;
  __builtin_memcpy(&bits, pointer_to(address), sizeof bits);
  return bits * 0x9e3779b97f4a7c15U;  // other libraries use the raw ones
}

}  // namespace

void Window::place_at(std::byte* base) noexcept {
  base_ = base;
  map_ = reinterpret_cast<std::uint8_t*>(base - map_size);
  records_ = reinterpret_cast<Record*>(base - map_size - records_size);
  map_end_ = reinterpret_cast<std::byte*>(map_);
  records_end_ = reinterpret_cast<std::byte*>(records_);
}

bool Window::open() noexcept { return open_anywhere() || open_reserved(); }

bool Window::open_anywhere() noexcept {
#if !defined(TERRACE_SANITIZED)  // sanitizers tolerate mappings only where the kernel puts them
  std::uint64_t random = random_bits();
  limit_ = max_granules;
  for (int i = 0; i < place_attempts; ++i, random = random * 0x5851f42d4c957f2dU + 1) {
    const std::uintptr_t place = lowest_place + (random >> 52) % places * place_step;
    // A page there and then nothing: only to learn whether the place exists on this machine and is free.
    void* const probe = os::reserve_at(pointer_to(place), os::page_size());
    if (probe == nullptr) continue;
    os::release(probe, os::page_size());
    place_at(pointer_to(place));
    return true;
  }
#endif
  return false;
}

bool Window::open_reserved() noexcept {
  reserved_ = true;
  for (std::uint32_t granules = max_granules; granules >= smallest_reservation; granules /= 2) {
    // The two arrays keep their distance from base, so that offsets are constants; their used ends are at their starts.
    const std::size_t bytes = records_size + map_size + (std::size_t{granules} << granule_shift);
    auto* const start = static_cast<std::byte*>(os::reserve(bytes, nullptr));
    if (start == nullptr) continue;
    const std::uintptr_t base = round_up(address_of(start) + records_size + map_size, granule_size);
    limit_ = granules - 1;  // the rounding took up to one
    place_at(pointer_to(base));
    return true;
  }
  return false;
}

bool Window::map_range(std::byte* from, std::byte* to) noexcept {
  const auto bytes = static_cast<std::size_t>(to - from);
  return reserved_ ? os::commit(from, bytes) : os::map_at(from, bytes) != nullptr;
}

bool Window::extend_metadata(std::uint32_t frontier) noexcept {
  const std::size_t page = os::page_size();
  std::byte* const map_needed = pointer_to(round_up(address_of(map_ + frontier), page));
  std::byte* const records_needed = pointer_to(round_up(address_of(records_ + frontier), page));
  if (map_needed > map_end_) {
    if (!map_range(map_end_, map_needed)) return false;
    map_end_ = map_needed;
  }
  if (records_needed > records_end_) {
    if (!map_range(records_end_, records_needed)) return false;
    records_end_ = records_needed;
  }
  return true;
}

GranuleIndex Window::grow(std::uint32_t granules, std::uint32_t& mapped) noexcept {
  std::uint32_t step = frontier_ / 8;
  step = min_of(max_of(step, min_step), max_step);
  std::uint32_t wanted = max_of(granules, step);
  while (frontier_ < limit_ && granules <= limit_ - frontier_) {
    wanted = min_of(wanted, limit_ - frontier_);
    if (extend_metadata(frontier_ + wanted) && map_range(address(frontier_), address(frontier_ + wanted))) {
      const GranuleIndex first = frontier_;
      frontier_ += wanted;
      mapped = wanted;
      committed_.add(std::uint64_t{wanted} << granule_shift);
      extent_.store(std::size_t{frontier_} << granule_shift, std::memory_order_release);  // [W1]
      return first;
    }
    if (wanted > granules) {
      wanted = granules;  // perhaps a limit is near: only what is needed
    } else {
      // Either a limit, or somebody mapped memory in the window. Only in the second case is there room further on.
      void* const probe = os::reserve_at(address(frontier_) + obstacle_skip * granule_size, granule_size);
      const bool limit_reached = reserved_ || probe == nullptr || !os::commit(probe, granule_size);
      if (probe != nullptr) os::release(probe, granule_size);
      void* const here = reserved_ ? nullptr : os::reserve_at(address(frontier_), granule_size);
      if (here != nullptr) os::release(here, granule_size);
      if (limit_reached || here != nullptr || frontier_ + obstacle_skip >= limit_) return no_granule;
      frontier_ += obstacle_skip;  // their records stay zero: State::unmapped
    }
  }
  return no_granule;
}

}  // namespace terrace::span
