// SPDX-License-Identifier: MIT OR Apache-2.0
// Spans from the source, and back to it. The source's functions are called without a lock.
#include "base/report.h"
#include "vmem/arena.h"

namespace terrace::vmem {

// What to ask for, so that the piece has a place in the span; 0: more than there can be. An arena is told where the span is to
// begin; of what other functions return only the quantum is known.
std::size_t Arena::bytes_to_import(const Constraints& c) const noexcept {
  std::size_t bytes = 0;
  if (!imports_from_arena()) {
    bytes = c.surely_enough(quantum_);
  } else if (__builtin_add_overflow(c.size, c.phase & (source_.quantum - 1), &bytes)) {
    return 0;
  }
  const std::size_t rounded = round_up(bytes, max_of(quantum_, source_.quantum));
  return rounded < bytes ? 0 : rounded;
}

// VM_PANIC is not passed on: this arena may have something in its caches.
void* Arena::ask_source(const Constraints& c, std::size_t bytes, int flags) noexcept {
  flags &= VM_KMFLAGS & ~VM_PANIC;
  if (!imports_from_arena() || c.align <= source_.quantum) return source_.take(source_.arena, bytes, flags);
  return vmem_xalloc(source_.arena, bytes, c.align, round_down(c.phase, source_.quantum), 0, nullptr, nullptr, flags);
}

// Only where any address will do: limits say nothing about where a source has something.
std::uintptr_t Arena::import(const Constraints& c, int flags) noexcept {
  if (source_.take == nullptr || !c.anywhere()) return nowhere;
  const std::size_t enough = bytes_to_import(c);
  if (enough == 0) return nowhere;
  std::size_t size = max_of(enough, source_.least);
  void* range = ask_source(c, size, flags);
  if (range == nullptr && size != enough) {
    size = enough;
    range = ask_source(c, size, flags);
  }
  return range == nullptr ? nowhere : adopt(address_of(range), size, c);
}

// The new span's first use is the piece it was imported for: nobody else can take it in between.
std::uintptr_t Arena::adopt(std::uintptr_t start, std::size_t size, const Constraints& c) noexcept {
  const ReportedPiece range{.arena = name_, .address = pointer_to(start), .size = size};
  if (!is_span(start, size)) report_bad_import("vmem_alloc", range, "not in whole quanta of the arena");
  {
    const Guard guard(mutex_);
    if (spans_.overlaps(start, size)) report_bad_import("vmem_alloc", range, "the arena has some of it already");
    if (store_.reserve(segments_per_operation)) {
      Segment& free = insert_span(start, size, true);
      return carve(free, c.place(start, size), c);
    }
  }
  if (source_.give != nullptr) source_.give(source_.arena, pointer_to(start), size);
  return nowhere;
}

void Arena::give_back(SegmentStack& spans) noexcept {
  if (spans.empty()) return;
  SegmentStack given;
  while (Segment* const s = spans.pop()) {
    source_.give(source_.arena, pointer_to(s->start), s->size);
    given.push(*s);
  }
  const Guard guard(mutex_);
  while (Segment* const s = given.pop()) store_.give(*s);
}

}  // namespace terrace::vmem
