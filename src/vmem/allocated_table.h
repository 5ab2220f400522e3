// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocated segments by address: what is freed is found here, and what is not here was not allocated. Buckets are doubled when
// there are more than two segments for each; where no memory is to be had for that, chains get longer.
#pragma once

#include "vmem/segment.h"

namespace terrace::vmem {

class AllocatedTable {
 public:
  AllocatedTable() noexcept = default;
  AllocatedTable(const AllocatedTable&) = delete;
  AllocatedTable& operator=(const AllocatedTable&) = delete;

  void insert(Segment& s) noexcept;
  void remove(Segment& s) noexcept;
  /// Null when no allocated segment begins there.
  Segment* find(std::uintptr_t start) const noexcept;
  std::size_t size() const noexcept { return size_; }
  /// Gives the buckets back. Nothing is in it any more.
  void clear() noexcept;

 private:
  static constexpr unsigned small_shift = 4;
  static constexpr std::size_t most_per_bucket = 2;

  Segment*& bucket(std::uintptr_t start) const noexcept;
  void grow() noexcept;

  Segment* small_[std::size_t{1} << small_shift] = {};
  Segment** buckets_ = small_;
  unsigned shift_ = small_shift;
  std::size_t size_ = 0;
};

}  // namespace terrace::vmem
