// SPDX-License-Identifier: MIT OR Apache-2.0
// The invariants of arena.h, looked at one by one. For tests; the library itself never calls it.
#include "vmem/arena.h"

namespace terrace::vmem {

using Kind = Segment::Kind;

/// What was met in the walk over segments.
struct Arena::Census {
  std::size_t spans = 0, free = 0, allocated = 0, cached = 0;
  std::uint64_t in_use = 0, total = 0, imported = 0;
};

const char* Arena::check_segment(const Segment& s, Census& census) noexcept {
  if (s.size == 0 || ((s.start | s.size) & (quantum_ - 1)) != 0) return "A1: a segment is not in whole quanta";
  if (s.kind == Kind::free) {
    ++census.free;
    if (s.before->kind == Kind::free) return "A2: two neighbours are free";
    const Segment* listed = free_.head(FreeLists::list_of(s.size));
    while (listed != nullptr && listed != &s) listed = listed->right;
    return listed == nullptr ? "A3: a free segment is not in its list" : nullptr;
  }
  if (s.kind != Kind::allocated && s.kind != Kind::cached) return "A1: a segment is of another kind";
  ++(s.kind == Kind::cached ? census.cached : census.allocated);
  census.in_use += s.size;
  if (allocated_.find(s.start) != &s) return "A4: an allocated segment is not in the table";
  return s.asked == 0 || s.asked > s.size ? "A4: more, or less, was asked for than an allocated segment has" : nullptr;
}

// A marker and what follows it up to the next.
const char* Arena::check_span(const Segment& marker, Census& census) noexcept {
  if (marker.kind != Kind::span || !is_span(marker.start, marker.size)) return "A1: a span does not begin with its marker";
  if (spans_.at_or_below(marker.start) != &marker) return "A7: a span is not in the tree";
  const Segment* const before = marker.before;
  if (before != &segments_.anchor() && before->end() > marker.start) return "A1: spans are in disorder";
  ++census.spans;
  census.total += marker.size;
  if (marker.imported) census.imported += marker.size;
  std::uintptr_t at = marker.start;
  for (const Segment* s = marker.after; at != marker.end(); s = s->after) {
    if (s->start != at || s->size > marker.end() - at) return "A1: segments are not the whole span";
    if (const char* const broken = check_segment(*s, census)) return broken;
    if (s->kind == Kind::free && s->size == marker.size && marker.imported && source_.give != nullptr)
      return "A2: an imported span is free";
    at = s->end();
  }
  return nullptr;
}

const char* Arena::check_sums(const Census& census) noexcept {
  std::size_t listed = 0, cached = 0;
  for (unsigned list = 0; list < FreeLists::count; ++list) {
    if ((free_.head(list) != nullptr) != (free_.first_from(list) == list)) return "A3: a list's bit says other than the list";
    for (const Segment* s = free_.head(list); s != nullptr; s = s->right) ++listed;
  }
  if (listed != census.free) return "A3: a list has a segment that is not free";
  if (allocated_.size() != census.allocated + census.cached) return "A4: the table has a segment that is not allocated";
  if (const char* const broken = caches_.check(cached)) return broken;
  if (cached != census.cached) return "A5: a cached segment is in no quantum cache";
  if (in_use_.read() != census.in_use || total_.read() != census.total || imported_.read() != census.imported)
    return "A6: bytes are not the sum over segments";
  return spans_.size() == census.spans ? nullptr : "A7: the tree has a span that is not there";
}

const char* Arena::check_places() noexcept {
  const auto is_here = [this](const Segment* wanted) {
    const Segment* s = &segments_.anchor();
    do {
      if (s == wanted) return true;
      s = s->after;
    } while (s != &segments_.anchor());
    return false;
  };
  if (!is_here(rotor_) || rotor_->start > rotor_address_) return "A8: the rotor is nowhere";
  for (const Walker* w = walkers_; w != nullptr; w = w->next) {
    if (!is_here(w->at)) return "A8: a walker is nowhere";
  }
  return nullptr;
}

const char* Arena::check_invariants() noexcept {
  const Guard guard(mutex_);
  Census census;
  const Segment& end = segments_.anchor();
  for (const Segment* s = end.after; s != &end; s = s->after) {
    if (s->after->before != s) return "A1: the list of segments is broken";
    if (s->kind != Kind::span) continue;
    if (const char* const broken = check_span(*s, census)) return broken;
  }
  if (end.after != &end && end.after->kind != Kind::span) return "A1: a segment belongs to no span";
  if (const char* const broken = check_sums(census)) return broken;
  return check_places();
}

}  // namespace terrace::vmem
