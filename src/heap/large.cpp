// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/large.h"

#include "os/memory.h"

namespace terrace::heap {
namespace {

using span::granule_size;
using span::Record;
using span::State;

constexpr std::size_t largest_request = std::size_t{span::max_granules} * granule_size - 2 * granule_size;
constexpr std::size_t lines_step = 37;  // odd: visits all 64 sets
constexpr std::size_t worth_moving_pages =
    1 * mib;  // below, copying costs less than changing page tables and faulting the old ones in again

}  // namespace

std::uint32_t Large::granules_for(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + granule_size - 1) >> span::granule_shift);
}

void* Large::allocate(std::size_t size, std::size_t align, bool& zero) noexcept {
  if (size > largest_request || align > largest_request - size) return nullptr;
  size = max_of<std::size_t>(size, 1);  // aligned beyond all classes, a block of nothing takes a granule
  std::size_t offset = 0;
  if (rotate_ && align <= cache_line) {
    offset = counters_.allocated.read() * lines_step % CacheShape::l1_sets * cache_line;
  }
  // The window's base is a multiple of 4 GiB only where the place was ours to choose: larger alignments look for their start.
  const std::size_t slack = align > granule_size ? align : 0;
  const span::Spans::Span found = spans_->take(granules_for(offset + size + slack), State::large);
  if (found.first == span::no_granule) return nullptr;
  std::byte* const start = spans_->window().address(found.first);
  if (slack != 0) offset = round_up(address_of(start), align) - address_of(start);
  const span::Window& window = spans_->window();
  const span::GranuleIndex block_granule = window.index_of(start + offset);
  Record& r = window.record(found.first);
  r.home_class = 0;
  r.start = static_cast<std::uint32_t>(offset % granule_size);
  r.scan = block_granule - found.first;
  r.when = size;
  if (slack != 0) spans_->set_first(block_granule, found.first);
  zero = found.zero;
  counters_.allocated.add();
  counters_.live_bytes.add(size);
  return start + offset;
}

bool Large::is_block(const void* p) const noexcept {
  const span::Window& window = spans_->window();
  if (!window.contains(p)) return false;
  const span::GranuleIndex i = window.index_of(p);
  const Record& r = record_of(p);
  return r.state == State::large && r.first + r.scan == i && address_of(p) % granule_size == r.start;
}

std::size_t Large::usable_size(const void* p) const noexcept {
  const Record& r = record_of(p);
  return round_up(r.start + r.when, os::page_size()) - r.start;
}

void Large::free(void* p, std::uint64_t now) noexcept {
  const Record& r = record_of(p);
  counters_.freed.add();
  counters_.live_bytes.sub(r.when);
  spans_->give(r.first, now);
}

bool Large::resize(void* p, std::size_t size) noexcept {
  if (size > largest_request) return false;
  Record& r = record_of(p);
  const std::uint32_t want = r.scan + granules_for(r.start + size);
  if (want > r.granules) {
    if (!spans_->extend(r.first, want)) return false;
    counters_.grown_in_place.add();
  } else if (want < r.granules) {
    spans_->shorten(r.first, want);
  }
  counters_.live_bytes.add(size - r.when);  // modulo 2^64: also when it shrinks
  r.when = size;
  return true;
}

void* Large::move(void* p, std::size_t size) noexcept {
  const Record& old = record_of(p);
  const std::size_t bytes = round_up(old.start + old.when, os::page_size());
  if (bytes < worth_moving_pages || old.scan != 0 || size > largest_request) return nullptr;
  const std::uint32_t offset = old.start;
  const std::size_t old_size = old.when;
  const span::Spans::Span found = spans_->take(granules_for(offset + size), State::large);
  if (found.first == span::no_granule) return nullptr;
  std::byte* const to = spans_->window().address(found.first);
  std::byte* const from = static_cast<std::byte*>(p) - offset;
  Record& r = spans_->window().record(found.first);
  r.start = offset;
  r.scan = 0;
  r.home_class = 0;
  r.when = size;
  if (!os::move_pages(from, to, bytes)) {
    spans_->give(found.first);
    return nullptr;
  }
  counters_.live_bytes.add(size - old_size);
  counters_.moved.add();
  spans_->give(old.first);
  return to + offset;
}

}  // namespace terrace::heap
