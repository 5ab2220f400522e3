// SPDX-License-Identifier: MIT OR Apache-2.0
// A slab in up to 64 sectors of whole pages, so that one word tells which of them are given back. In slabs of up to 64 pages a
// sector is a page; in longer ones it is no longer than a block or two.
#pragma once

#include "heap/classes/placement.h"
#include "os/memory.h"

namespace terrace::heap {

/// Blocks first, first + 1, ... end - 1.
struct BlockRange {
  std::uint32_t first = 0, end = 0;
};

class Sectors {
 public:
  using Mask = std::uint64_t;

  /// Of a slab whose first block lies `start` bytes into it.
  Sectors(const Shape& shape, std::uint32_t start) noexcept : shape_(shape), start_(start) {
    const auto slab = static_cast<std::uint32_t>(shape.granules * span::granule_size);
    const auto page = static_cast<std::uint32_t>(os::page_size());
    bytes_ = static_cast<std::uint32_t>(round_up((slab + 63) / 64, page));
    count_ = (slab + bytes_ - 1) / bytes_;
    slab_ = slab;
  }

  std::uint32_t count() const noexcept { return count_; }
  Mask all() const noexcept { return below(count_); }
  /// Where the sectors from `first` to before `end` lie in the slab, in bytes.
  std::uint32_t offset(std::uint32_t sector) const noexcept { return min_of(sector * bytes_, slab_); }

  /// The sectors that blocks of the range lie in.
  Mask touched_by(BlockRange blocks) const noexcept {
    const std::uint32_t from = start_ + shape_.offset_of(blocks.first);
    const std::uint32_t to = start_ + shape_.offset_of(blocks.end - 1) + shape_.stride;
    return below((to - 1) / bytes_ + 1) & ~below(from / bytes_);
  }
  static Mask between(std::uint32_t first, std::uint32_t end) noexcept { return below(end) & ~below(first); }
  /// The blocks that lie, wholly or partly, in the sectors from `first` to before `end`.
  BlockRange blocks_in(std::uint32_t first, std::uint32_t end) const noexcept {
    return {first_beyond(offset(first), false), first_beyond(offset(end), true)};
  }

  /// Calls f(first, end) for each run of sectors in the mask.
  template <class F>
  static void for_each_run(Mask mask, F f) noexcept {
    while (mask != 0) {
      const auto first = static_cast<std::uint32_t>(std::countr_zero(mask));
      const auto end = first + static_cast<std::uint32_t>(std::countr_one(mask >> first));
      f(first, end);
      mask &= ~below(end);
    }
  }

 private:
  static constexpr Mask below(std::uint32_t n) noexcept { return n >= 64 ? ~Mask{0} : (Mask{1} << n) - 1; }

  // The first block that ends, or else that begins, beyond this offset in the slab; the number of blocks when there is none.
  std::uint32_t first_beyond(std::uint32_t offset, bool begins) const noexcept {
    if (offset <= start_) return 0;
    const std::uint32_t at = offset - start_;
    const std::uint32_t group = at / shape_.group_bytes, within = at - group * shape_.group_bytes;
    const std::uint32_t nth = (within + (begins ? shape_.stride - 1 : 0)) / shape_.stride;
    return min_of(group * shape_.per_group + min_of(nth, shape_.per_group), shape_.blocks);
  }

  const Shape& shape_;
  std::uint32_t start_, bytes_, count_, slab_;
};

}  // namespace terrace::heap
