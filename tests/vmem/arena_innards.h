// SPDX-License-Identifier: MIT OR Apache-2.0
// What tests look at, and break, inside of an arena.
#pragma once

#include "vmem/arena.h"

namespace terrace::vmem {

class ArenaInnards {
 public:
  static bool has_walkers(Arena& a) {
    const os::LockGuard guard(a.mutex_);
    return a.walkers_ != nullptr;
  }
  /// The segment of that kind that begins there; null when there is none.
  static Segment* segment(Arena& a, std::uintptr_t start, Segment::Kind kind) {
    for (Segment* s = a.segments_.anchor().after; s != &a.segments_.anchor(); s = s->after) {
      if (s->start == start && s->kind == kind) return s;
    }
    return nullptr;
  }
  static FreeLists& free_lists(Arena& a) { return a.free_; }
  static AllocatedTable& table(Arena& a) { return a.allocated_; }
  static QuantumCaches& caches(Arena& a) { return a.caches_; }
  static SpanTree& spans(Arena& a) { return a.spans_; }
  static LockedCounter& in_use(Arena& a) { return a.in_use_; }
  static LockedCounter& imported(Arena& a) { return a.imported_; }
  static std::uintptr_t& rotor_address(Arena& a) { return a.rotor_address_; }
  static Segment*& rotor(Arena& a) { return a.rotor_; }
};

}  // namespace terrace::vmem
