// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/large/large.h"

#include "os/memory.h"

#include <cstring>

namespace terrace::heap {
namespace {

using span::granule_size;
using span::Record;

constexpr std::size_t largest_request = std::size_t{span::max_granules} * granule_size - 2 * granule_size;
constexpr std::size_t worth_giving_back = 4;  // one in so many parts of a block
constexpr std::size_t lines_step = 37;        // odd: visits all 64 sets
constexpr std::size_t worth_moving_pages =
    1 * mib;  // below, copying costs less than changing page tables and faulting the old ones in again

}  // namespace

void* Large::allocate(std::size_t size, std::size_t align, bool zeroed, unsigned node) noexcept {
  if (size > largest_request || align > largest_request - size) return nullptr;
  size = max_of<std::size_t>(size, 1);  // aligned beyond all classes, a block of nothing takes a granule
  std::uint32_t line = 0;
  if (rotate_ && align <= cache_line) {
    line = static_cast<std::uint32_t>(counters_.allocated.read() * lines_step % CacheShape::l1_sets * cache_line);
  }
  const span::Spans::Span found = spans_->take(granules_for(line + size), large_span, span::Cut::whole, node, align);
  if (found.first == span::no_granule) return nullptr;
  spans_->on_take();
  Record& r = spans_->window().record(found.first);
  begin(part(r), line, size);
  counters_.allocated.add();
  counters_.live_bytes.add(size);
  if (zeroed) make_zero(found, start_of(r) + line, size);
  return start_of(r) + line;
}

// A program may have written to a clean span after it was freed. To purge it once more costs little where it has no pages.
void Large::make_zero(const span::Spans::Span& found, void* p, std::size_t size) noexcept {
  if (found.untouched) return;
  const Record& r = spans_->window().record(found.first);
  if (found.clean && os::purge(start_of(r), length_of(r))) return;
  std::memset(p, 0, size);
}

void Large::free(void* p, std::uint64_t now) noexcept {
  Record& r = record_of(p);
  counters_.freed.add();
  counters_.live_bytes.sub(part(r).requested);
  if (hardened && part(r).lies == Lies::in_place) os::purge(start_of(r), length_of(r));
  release(r, now);
}

void Large::set_live_bytes(LargeRecord& l, std::size_t size) noexcept {
  counters_.live_bytes.add(size - l.requested);  // modulo 2^64
  l.filled = max_of<std::uint64_t>(l.filled, size);
  set_requested(l, size);
}

void Large::give_up(void* p, std::uint64_t now) noexcept {
  part(record_of(p)).lies = Lies::in_place;
  free(p, now);
}

void Large::release(Record& r, std::uint64_t now) noexcept {
  if (part(r).lies == Lies::in_place) return spans_->give(r.first, now);
  counters_.apart.sub(1);
  replace(r.first);
}

// Gives a taken span back that is not one mapping with its neighbours, or that has holes.
void Large::replace(span::GranuleIndex first) noexcept {
  const Record& r = spans_->window().record(first);
  if (os::map_anew(start_of(r), length_of(r))) {
    spans_->give_fresh(first);
  } else {
    spans_->lose(first);
  }
}

bool Large::resize(void* p, std::size_t size) noexcept {
  if (size > largest_request) return false;
  Record& r = record_of(p);
  LargeRecord& l = part(r);
  const std::uint32_t want = granules_for(l.line + size);
  if (want > r.granules) {
    if (!spans_->extend(r.first, want)) return false;
    spans_->on_take();
    counters_.grown_in_place.add();
  }
  if (want == r.granules && l.lies == Lies::apart) l.lies = Lies::both;
  shorten(r, want, size);
  set_live_bytes(l, size);
  return true;
}

// To `granules` for a block of `size` bytes, or not at all. The part is of what it was when pages went last: in small steps,
// too, few system calls are made.
void Large::shorten(Record& r, std::uint32_t granules, std::size_t size) noexcept {
  LargeRecord& l = part(r);
  const bool gives_back = size < l.filled - l.filled / worth_giving_back;
  std::byte* const from = start_of(r) + round_up(l.line + size, page_);
  if (gives_back) l.filled = size;
  if (l.lies != Lies::in_place) {
    if (granules + seam < r.granules) shorten_apart(r, granules);
    if (gives_back) os::purge(from, static_cast<std::size_t>(start_of(r) + length_of(r) - from));
  } else if (gives_back) {
    spans_->shorten(r.first, granules, from);
  } else if (granules < r.granules) {
    spans_->shorten(r.first, granules);
  }
}

// The last granule stays in the window's mapping here, too, so that what is mapped anew before it becomes one with it.
void Large::shorten_apart(Record& r, std::uint32_t granules) noexcept {
  std::byte* const rest = start_of(r) + granules * granule_size;
  std::byte* const last = start_of(r) + length_of(r) - seam * granule_size;
  if (!os::map_anew(rest, static_cast<std::size_t>(last - rest))) {
    part(r).lies = Lies::both;  // without a seam it is not to be moved page by page
    return spans_->lose(spans_->split(r.first, granules));
  }
  const span::GranuleIndex first = spans_->split(r.first, granules + seam);
  if (os::purge(last, seam * granule_size)) {
    spans_->give_fresh(first);
  } else {
    spans_->give(first);
  }
}

// Whether the pages of a block are to be moved to a span of `granules`: counts the block as apart then. mremap wants a source
// of one mapping and a longer target, see os/memory.h.
bool Large::start_move(const Record& from, std::uint32_t granules) noexcept {
  if (!spans_->window().movable() || part(from).lies == Lies::both || granules <= movable_granules(from)) return false;
  if (counters_.apart.add() < most_apart) return true;
  counters_.apart.sub(1);
  return false;
}

bool Large::finish_move(const Record& from, Record& to) noexcept {
  const std::size_t bytes = std::size_t{movable_granules(from)} * granule_size;
  if (!os::move_pages(start_of(from), bytes, start_of(to), length_of(to) - seam * granule_size)) {
    counters_.apart.sub(1);
    return false;
  }
  part(to).lies = Lies::apart;
  counters_.moved.add();
  return true;
}

// Whatever the kernel refuses, and in whatever state it leaves the target: the block is as it was unless all of it was moved.
void* Large::move(void* p, std::size_t size) noexcept {
  Record& old = record_of(p);
  const LargeRecord was = part(old);
  if (was.line + was.requested < worth_moving_pages || size > largest_request) return nullptr;
  const std::uint32_t granules = granules_for(was.line + size);
  const bool by_pages = start_move(old, granules);
  const span::Spans::Span found = spans_->take(granules + (by_pages ? seam : 0), large_span, span::Cut::whole, old.node);
  if (found.first == span::no_granule) {
    if (by_pages) counters_.apart.sub(1);
    return nullptr;
  }
  spans_->on_take();
  Record& r = spans_->window().record(found.first);
  begin(part(r), was.line, size);
  std::byte* const fresh = start_of(r) + was.line;
  const bool moved = by_pages && finish_move(old, r);
  if (!moved) {
    if (by_pages && !os::map_anew(start_of(r), length_of(r))) {
      spans_->lose(r.first);
      return nullptr;
    }
    std::memcpy(fresh, p, min_of<std::size_t>(was.requested, size));
  }
  counters_.live_bytes.add(size - was.requested);
  if (moved && was.lies == Lies::in_place) {
    replace(old.first);
  } else {
    release(old, os::coarse_milliseconds());
  }
  return fresh;
}

}  // namespace terrace::heap
