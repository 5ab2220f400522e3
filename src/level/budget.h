// SPDX-License-Identifier: MIT OR Apache-2.0
// A bound in bytes on the blocks that levels hold: in the caps of the core and thread levels, or in the depots.
//
// The limit suits a changing mix of sizes. A program that is refused hundreds of times a millisecond, or a few times with full
// magazines, works on more blocks than the levels can hold, and each block goes to the slabs and back (a burst). Then the limit
// rises by an eighth at a time; it decays after the burst. Many threads that use little memory and sleep are no burst.
#pragma once

#include "base/assert.h"
#include "base/bits.h"
#include "base/described.h"
#include "base/types.h"

#include <atomic>
#include <cstdint>

namespace terrace::level {

class alignas(cache_line) Budget {
 public:
  /// In a burst, at most `in_burst` bytes are added.
  void set_limit(std::uint64_t bytes, std::uint64_t in_burst = 0) noexcept {
    if (limit_.load(std::memory_order_relaxed) != bytes) limit_.store(bytes, std::memory_order_relaxed);
    if (most_extra_.load(std::memory_order_relaxed) != in_burst) most_extra_.store(in_burst, std::memory_order_relaxed);
  }
  std::uint64_t limit() const noexcept {
    return limit_.load(std::memory_order_relaxed) +
           min_of(extra_.load(std::memory_order_relaxed), most_extra_.load(std::memory_order_relaxed));
  }
  std::uint64_t granted() const noexcept { return granted_.load(std::memory_order_relaxed); }

  bool has(std::uint64_t bytes) const noexcept { return granted() + bytes <= limit(); }
  /// relaxed throughout: the number is the only thing that is shared.
  bool reserve(std::uint64_t bytes) noexcept {
    std::uint64_t have = granted_.load(std::memory_order_relaxed);
    do {
      if (have + bytes > limit()) return false;
    } while (!granted_.compare_exchange_weak(have, have + bytes, std::memory_order_relaxed));
    return true;
  }
  /// Called at each refusal. True, after a number of refusals: the caller must call look_for_burst() with the time.
  bool refused(std::uint64_t weight = 1) noexcept {
    const std::uint64_t before = refusals_.fetch_add(weight, std::memory_order_relaxed);
    return before / refusals_between_looks != (before + weight) / refusals_between_looks;
  }
  void look_for_burst(std::uint64_t now_ms) noexcept {
    if (now_ms - last_look_.exchange(now_ms, std::memory_order_relaxed) > burst_ms) return;
    const std::uint64_t more = extra_.load(std::memory_order_relaxed) + limit_.load(std::memory_order_relaxed) / 8;
    extra_.store(min_of(more, most_extra_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }
  /// At each tick of maintenance.
  void fade() noexcept {
    const std::uint64_t extra = extra_.load(std::memory_order_relaxed);
    extra_.store(extra - extra / 4 - min_of<std::uint64_t>(extra % 4, 1), std::memory_order_relaxed);
  }

  static constexpr std::uint64_t refusals_between_looks = 4096;  // by weight
  static constexpr std::uint64_t burst_ms = 5;                   // a coarse clock's step is up to 4

  /// Grants the least that a class needs, even beyond the limit.
  void force_reserve(std::uint64_t bytes) noexcept { granted_.fetch_add(bytes, std::memory_order_relaxed); }
  void release(std::uint64_t bytes) noexcept {
    const std::uint64_t before = granted_.fetch_sub(bytes, std::memory_order_relaxed);
    TERRACE_ASSERT(before >= bytes, "budget: more is released than was granted");
  }

 private:
  friend struct introspect::Layout;
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> granted_{0};
  std::atomic<std::uint64_t> extra_{0}, most_extra_{0}, refusals_{0}, last_look_{0};
};

}  // namespace terrace::level
