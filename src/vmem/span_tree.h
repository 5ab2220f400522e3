// SPDX-License-Identifier: MIT OR Apache-2.0
// The span markers of an arena by address: a treap (C. Aragon, R. Seidel: Randomized Search Trees, FOCS 1989). Its priorities
// are mixed addresses, so that its expected depth is logarithmic whatever the order in which a source returns spans. Spans
// never overlap.
#pragma once

#include "vmem/segment.h"

namespace terrace::vmem {

class SpanTree {
 public:
  void insert(Segment& span) noexcept;
  void remove(Segment& span) noexcept;
  /// The last span that begins at or before the address; null when there is none.
  Segment* at_or_below(std::uintptr_t address) const noexcept;
  /// The first span that begins behind the address; null when there is none.
  Segment* above(std::uintptr_t address) const noexcept;
  /// Whether a span has an address of [start, start + size). Requires size > 0 and no overflow.
  bool overlaps(std::uintptr_t start, std::size_t size) const noexcept;
  std::size_t size() const noexcept { return size_; }

 private:
  Segment* root_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace terrace::vmem
