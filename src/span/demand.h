// SPDX-License-Identifier: MIT OR Apache-2.0
// What a process has needed lately it may need again soon. The most that was in use is remembered; at each tick a quarter of
// what is not in use any more is forgotten, so that after ten seconds next to nothing is left of it.
#pragma once

#include "base/bits.h"
#include "base/counter.h"
#include "base/types.h"

namespace terrace::span {

/// Of a peak so much at most may stay when it is free: a process that sleeps after it has no tick, and keeps it.
inline constexpr std::uint64_t most_freed_lately = 48 * mib;

class Demand {
 public:
  /// Bytes that were in use lately and are not now. Remembers `in_use`: it is called on every path that takes or frees much.
  std::uint64_t freed_lately(std::uint64_t in_use) noexcept {
    const std::uint64_t peak = peak_.read();
    if (in_use > peak) peak_.set(in_use);
    return min_of(peak - min_of(peak, in_use), most_freed_lately);
  }
  std::uint64_t peak() const noexcept { return peak_.read(); }
  /// At each tick.
  void fade(std::uint64_t in_use) noexcept {
    const std::uint64_t peak = peak_.read();
    peak_.set(peak - (peak - min_of(peak, in_use)) / 4);
  }

 private:
  SharedCounter peak_;  // of two threads that set it one may be lost
};

}  // namespace terrace::span
