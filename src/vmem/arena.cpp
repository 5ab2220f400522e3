// SPDX-License-Identifier: MIT OR Apache-2.0
// Pieces: taken from free segments, put together with free neighbours again.
#include "vmem/arena.h"

#include "base/report.h"

#include <cerrno>
#include <cstring>

namespace terrace::vmem {

using Kind = Segment::Kind;

Arena::Arena(const char* name, std::size_t quantum, std::size_t most_cached, const Source& source) noexcept
    : quantum_(quantum), source_(source), caches_(quantum, most_cached), rotor_(&segments_.anchor()) {
  std::memcpy(name_, name, strnlen(name, name_size - 1));
}

void Arena::close() noexcept {
  const Guard guard(mutex_);
  for (Segment *s = segments_.anchor().after, *next = nullptr; s != &segments_.anchor(); s = next) {
    next = s->after;
    store_.give(*s);
  }
  store_.give_all();
  allocated_.clear();
}

bool Arena::is_span(std::uintptr_t start, std::size_t size) const noexcept {
  std::uintptr_t end = 0;
  return start != 0 && size != 0 && ((start | size) & (quantum_ - 1)) == 0 && !__builtin_add_overflow(start, size, &end);
}

bool Arena::add(std::uintptr_t start, std::size_t size) noexcept {
  const Guard guard(mutex_);
  const bool overlaps = spans_.overlaps(start, size);
  if (overlaps || !store_.reserve(segments_per_operation)) {
    errno = overlaps ? EINVAL : ENOMEM;
    return false;
  }
  insert_span(start, size, false);
  return true;
}

bool Arena::contains(std::uintptr_t start, std::size_t size) noexcept {
  const Guard guard(mutex_);
  const Segment* const span = spans_.at_or_below(start);
  return span != nullptr && start < span->end() && size <= span->end() - start;
}

bool Arena::has_piece(std::uintptr_t start, std::size_t asked) noexcept {
  const Guard guard(mutex_);
  const Segment* const s = allocated_.find(start);
  return s != nullptr && s->kind == Kind::allocated && s->asked == asked;
}

std::uintptr_t Arena::allocate(const Constraints& c, int flags, bool cached) noexcept {
  {
    const Guard guard(mutex_);
    if (Segment* const s = cached ? caches_.take(c.size) : nullptr) {
      s->asked = c.asked;
      allocations_.add();
      return s->start;
    }
    if (const std::uintptr_t address = take(c, flags); address != nowhere) return address;
  }
  if (const std::uintptr_t address = import(c, flags); address != nowhere) return address;
  if (empty_caches()) {
    {
      const Guard guard(mutex_);
      if (const std::uintptr_t address = take(c, flags); address != nowhere) return address;
    }
    if (const std::uintptr_t address = import(c, flags); address != nowhere) return address;
  }
  const Guard guard(mutex_);
  failures_.add();
  return nowhere;
}

void Arena::free(const char* function, std::uintptr_t start, std::size_t size, bool cached) noexcept {
  SegmentStack gone;
  {
    const Guard guard(mutex_);
    Segment& s = checked(function, start, size);
    frees_.add();
    if (cached && caches_.put(s)) return;
    release(s, gone);
  }
  give_back(gone);
}

bool Arena::empty_caches() noexcept {
  SegmentStack gone;
  bool any = false;
  {
    const Guard guard(mutex_);
    while (Segment* const s = caches_.take_any()) {
      release(*s, gone);
      any = true;
    }
  }
  give_back(gone);
  return any;
}

ArenaStatistics Arena::statistics() const noexcept {
  return {.in_use = in_use_.read(),
          .cached = caches_.bytes(),
          .total = total_.read(),
          .imported = imported_.read(),
          .allocations = allocations_.read(),
          .frees = frees_.read(),
          .failures = failures_.read()};
}

// ---- under the lock

std::uintptr_t Arena::take(const Constraints& c, int flags) noexcept {
  if (!store_.reserve(segments_per_operation)) return nowhere;
  const Place place = find(c, flags);
  if (place.segment == nullptr) return nowhere;
  const std::uintptr_t address = carve(*place.segment, place.address, c);
  if ((flags & VM_NEXTFIT) != 0) {
    rotor_address_ = address + c.size;
    rotor_ = place.segment;  // the piece, or what is left before it
  }
  return address;
}

std::uintptr_t Arena::carve(Segment& free, std::uintptr_t address, const Constraints& c) noexcept {
  TERRACE_ASSERT(free.kind == Kind::free && address >= free.start && c.size <= free.end() - address,
                 "arena: a piece is not within its segment");
  free_.remove(free);
  Segment* piece = &free;
  if (address != free.start) {
    piece = &split(free, address);
    free_.insert(free);
  }
  if (piece->size != c.size) free_.insert(split(*piece, address + c.size));
  piece->kind = Kind::allocated;
  piece->asked = c.asked;
  allocated_.insert(*piece);
  in_use_.add(c.size);
  allocations_.add();
  return address;
}

// What is at the address and behind it becomes a free segment that is in no list.
Segment& Arena::split(Segment& s, std::uintptr_t address) noexcept {
  Segment& upper = store_.take();
  upper.start = address;
  upper.size = s.end() - address;
  upper.kind = Kind::free;
  s.size = address - s.start;
  SegmentList::insert_after(s, upper);
  return upper;
}

void Arena::absorb(Segment& lower, Segment& upper) noexcept {
  lower.size += upper.size;
  unlink(upper);
}

// Whoever remembers the segment goes to a neighbour: the rotor back, as it begins at or before its address; walkers on, so that
// they report nothing twice.
void Arena::unlink(Segment& s) noexcept {
  if (rotor_ == &s) rotor_ = s.before;
  for (Walker* w = walkers_; w != nullptr; w = w->next) {
    if (w->at == &s) w->at = s.after;
  }
  SegmentList::remove(s);
  store_.give(s);
}

Segment& Arena::checked(const char* function, std::uintptr_t start, std::size_t size) noexcept {
  Segment* const s = allocated_.find(start);
  const ReportedPiece piece{.arena = name_, .address = pointer_to(start), .size = size};
  if (s == nullptr || s->kind == Kind::cached) report_bad_arena_free(function, piece);
  if (s->asked != size) report_wrong_arena_size(function, piece, s->asked);
  return *s;
}

// A span that the source gets back is added to `gone`, to be given back without the lock.
void Arena::release(Segment& s, SegmentStack& gone) noexcept {
  allocated_.remove(s);
  in_use_.add(0 - s.size);
  s.kind = Kind::free;
  Segment& lower = s.before->kind == Kind::free ? *s.before : s;
  if (&lower != &s) {
    free_.remove(lower);
    absorb(lower, s);
  }
  if (lower.after->kind == Kind::free) {
    free_.remove(*lower.after);
    absorb(lower, *lower.after);
  }
  Segment& marker = *lower.before;
  if (marker.kind != Kind::span || !marker.imported || marker.size != lower.size || source_.give == nullptr) {
    free_.insert(lower);
    return;
  }
  unlink(lower);
  Segment& range = store_.take();
  range.start = marker.start;
  range.size = marker.size;
  remove_span(marker);
  gone.push(range);
}

Segment& Arena::insert_span(std::uintptr_t start, std::size_t size, bool imported) noexcept {
  Segment &marker = store_.take(), &free = store_.take();
  marker.start = free.start = start;
  marker.size = free.size = size;
  marker.kind = Kind::span;
  marker.imported = imported;
  free.kind = Kind::free;
  Segment* const above = spans_.above(start);
  SegmentList::insert_after(*(above != nullptr ? above : &segments_.anchor())->before, marker);
  SegmentList::insert_after(marker, free);
  spans_.insert(marker);
  free_.insert(free);
  total_.add(size);
  if (imported) imported_.add(size);
  return free;
}

void Arena::remove_span(Segment& marker) noexcept {
  spans_.remove(marker);
  total_.add(0 - marker.size);
  imported_.add(0 - marker.size);
  unlink(marker);
}

}  // namespace terrace::vmem
