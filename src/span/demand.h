// SPDX-License-Identifier: MIT OR Apache-2.0
// What a process has needed lately it may need again soon. The most that was in use is remembered; at each tick a quarter of
// what is not in use any more is forgotten, so that after ten seconds next to nothing is left of it.
//
// While nothing is taken, demand rests. What is freed then, at the end of a task, is not needed soon, and perhaps nobody
// calls again who could give it back (docs/adr/0043).
#pragma once

#include "base/bits.h"
#include "base/counter.h"
#include "base/types.h"

namespace terrace::span {

/// Of a peak so much at most may stay when it is free: a process that sleeps after it has no tick, and keeps it.
inline constexpr std::uint64_t most_freed_lately = 48 * mib;

/// Demand rests after so many milliseconds.
inline constexpr std::uint64_t rest_ms = 4;

class Demand {
 public:
  /// Bytes that were in use lately and are not now. Remembers `in_use`: it is called on every path that takes or frees much.
  std::uint64_t freed_lately(std::uint64_t in_use) noexcept {
    const std::uint64_t peak = peak_.read();
    if (in_use > peak) peak_.set(in_use);
    return min_of(peak - min_of(peak, in_use), most_freed_lately);
  }
  std::uint64_t peak() const noexcept { return peak_.read(); }
  /// A span was taken, or blocks of a slab without pages. In milliseconds.
  void on_take(std::uint64_t now) noexcept {
    if (taken_at_.read() != now) taken_at_.set(now);
  }
  /// The program has said that it does not need so many bytes any more: realloc to a smaller size.
  void forget(std::uint64_t bytes) noexcept {
    const std::uint64_t peak = peak_.read();
    peak_.set(peak - min_of(peak, bytes));
  }
  bool rests(std::uint64_t now) const noexcept { return now > taken_at_.read() + rest_ms; }
  /// At each tick.
  void fade(std::uint64_t in_use) noexcept {
    const std::uint64_t peak = peak_.read();
    peak_.set(peak - (peak - min_of(peak, in_use)) / 4);
  }

 private:
  SharedCounter peak_, taken_at_;  // of two threads that set one of them one may be lost
};

}  // namespace terrace::span
