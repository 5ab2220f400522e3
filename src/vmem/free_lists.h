// SPDX-License-Identifier: MIT OR Apache-2.0
// Free segments of an arena: list n has those of 2^n to 2^(n+1) - 1 bytes, and bit n of a word tells whether it has any. So the
// first list in which every segment is long enough is found by one bit instruction ("instant fit"): constant time, at the price
// that a segment of the request's own list is passed over even if it would do.
//
// Invariant: a bit is set exactly when its list is not empty.
#pragma once

#include "vmem/segment.h"

#include <bit>

namespace terrace::vmem {

class FreeLists {
 public:
  static constexpr unsigned count = 64;
  static constexpr unsigned none = count;

  /// The list of segments of that size. Requires size > 0.
  static constexpr unsigned list_of(std::size_t size) noexcept { return static_cast<unsigned>(std::bit_width(size)) - 1; }
  /// The first list whose segments all have that size; `none` when there can be no such segment. Requires size > 0.
  static constexpr unsigned list_for(std::size_t size) noexcept { return static_cast<unsigned>(std::bit_width(size - 1)); }

  /// The first list that is not empty, from this one on.
  unsigned first_from(unsigned list) const noexcept {
    if (list >= count) return none;
    const std::uint64_t mask = occupied_ & ~std::uint64_t{0} << list;
    return mask == 0 ? none : static_cast<unsigned>(std::countr_zero(mask));
  }
  Segment* head(unsigned list) const noexcept { return heads_[list]; }

  void insert(Segment& s) noexcept {
    Segment*& head = heads_[list_of(s.size)];
    s.left = nullptr;
    s.right = head;
    if (head != nullptr) head->left = &s;
    head = &s;
    occupied_ |= std::uint64_t{1} << list_of(s.size);
  }
  void remove(Segment& s) noexcept {
    const unsigned list = list_of(s.size);
    (s.left != nullptr ? s.left->right : heads_[list]) = s.right;
    if (s.right != nullptr) s.right->left = s.left;
    if (heads_[list] == nullptr) occupied_ &= ~(std::uint64_t{1} << list);
  }

 private:
  Segment* heads_[count] = {};
  std::uint64_t occupied_ = 0;
};
static_assert(FreeLists::list_of(1) == 0 && FreeLists::list_for(1) == 0 && FreeLists::list_of(4096) == 12);
static_assert(FreeLists::list_for(4096) == 12 && FreeLists::list_for(4097) == 13 && FreeLists::list_for(~std::size_t{0}) == 64);

}  // namespace terrace::vmem
