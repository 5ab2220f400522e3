// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks above the largest size class: a span each. The block starts a rotating number of cache lines into its span, so that
// large blocks, too, do not all begin in the same cache set.
#pragma once

#include "heap/placement.h"
#include "span/spans.h"

namespace terrace::heap {

struct LargeCounters {
  SharedCounter allocated, freed, grown_in_place, moved, live_bytes;
};

class Large {
 public:
  void open(span::Spans& spans, Placement placement) noexcept {
    spans_ = &spans;
    rotate_ = placement != Placement::none;
  }

  /// Null when memory is short. `zero` tells whether all of it reads as zero. Requires a power of two for align.
  void* allocate(std::size_t size, std::size_t align, bool& zero) noexcept;
  /// Requires is_block(p). `now` in coarse milliseconds.
  void free(void* p, std::uint64_t now) noexcept;
  /// Whether p is the start of a large block.
  bool is_block(const void* p) const noexcept;
  std::size_t usable_size(const void* p) const noexcept;
  /// Lengthens or shortens in place. False: nothing was changed.
  bool resize(void* p, std::size_t size) noexcept;
  /// A block of `size` with the contents of p moved page by page; null when that does not work. p is gone on success.
  void* move(void* p, std::size_t size) noexcept;

  const LargeCounters& counters() const noexcept { return counters_; }

 private:
  /// The record of the span that p points into, if that is where a block may start; else of no large span.
  span::Record& record_of(const void* p) const noexcept {
    const span::Window& window = spans_->window();
    span::Record& own = window.record(window.index_of(p));
    return own.state == span::State::interior ? window.record(own.first) : own;
  }
  static std::uint32_t granules_for(std::size_t bytes) noexcept;

  span::Spans* spans_ = nullptr;
  bool rotate_ = true;
  LargeCounters counters_;
};

}  // namespace terrace::heap
