// SPDX-License-Identifier: MIT OR Apache-2.0
// Which free segment a piece is cut from. All four policies find a place whenever there is one.
#include "vmem/arena.h"

namespace terrace::vmem {

using Kind = Segment::Kind;

Arena::Place Arena::find(const Constraints& c, int flags) noexcept {
  if ((flags & VM_NEXTFIT) != 0) return next_fit(c);
  if ((flags & VM_BESTFIT) != 0) return best_fit(c);
  if ((flags & VM_FIRSTFIT) != 0) return first_fit(c);
  return instant_fit(c);
}

// The first list in which every segment is long enough; if there is none, or place matters, every segment that could be.
Arena::Place Arena::instant_fit(const Constraints& c) const noexcept {
  const std::size_t enough = c.anywhere() ? c.surely_enough(quantum_) : 0;
  if (enough != 0) {
    const unsigned list = free_.first_from(FreeLists::list_for(enough));
    if (list != FreeLists::none) return {free_.head(list), c.place(free_.head(list)->start, free_.head(list)->size)};
  }
  for (unsigned list = free_.first_from(FreeLists::list_of(c.size)); list != FreeLists::none;
       list = free_.first_from(list + 1)) {
    for (Segment* s = free_.head(list); s != nullptr; s = s->right) {
      if (const std::uintptr_t address = c.place(s->start, s->size); address != nowhere) return {s, address};
    }
  }
  return {};
}

// The shortest segment. Those of a list are shorter than those of the next one; one of exactly the size ends the search.
Arena::Place Arena::best_fit(const Constraints& c) const noexcept {
  Place best;
  for (unsigned list = free_.first_from(FreeLists::list_of(c.size)); list != FreeLists::none;
       list = free_.first_from(list + 1)) {
    for (Segment* s = free_.head(list); s != nullptr; s = s->right) {
      if (best.segment != nullptr && s->size >= best.segment->size) continue;
      if (const std::uintptr_t address = c.place(s->start, s->size); address != nowhere) best = {s, address};
      if (best.segment == s && s->size == c.size) return best;
    }
    if (best.segment != nullptr) break;
  }
  return best;
}

// The lowest address.
Arena::Place Arena::first_fit(const Constraints& c) const noexcept {
  const Segment& end = segments_.anchor();
  for (Segment* s = end.after; s != &end; s = s->after) {
    if (s->kind != Kind::free) continue;
    if (const std::uintptr_t address = c.place(s->start, s->size); address != nowhere) return {s, address};
  }
  return {};
}

// The lowest address from the rotor's on; then the lowest of all, which may lie before the rotor in its own segment.
Arena::Place Arena::next_fit(const Constraints& c) noexcept {
  const Segment& end = segments_.anchor();
  while (rotor_->after != &end && rotor_->after->start <= rotor_address_) rotor_ = rotor_->after;
  Constraints behind = c;
  behind.lowest = max_of(c.lowest, rotor_address_);
  Segment* s = rotor_;  // may be the anchor, which is not free
  do {
    const std::uintptr_t address = s->kind == Kind::free ? behind.place(s->start, s->size) : nowhere;
    if (address != nowhere) return {s, address};
    s = s->after;
  } while (s != &end);
  return first_fit(c);
}

}  // namespace terrace::vmem
