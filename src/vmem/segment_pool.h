// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory of arenas: segments and tables of buckets, mapped by os/metadata.h and never from malloc, since arenas may lie below
// it. What an arena needs no more goes to the pool and from there to other arenas; it never goes back to the system.
#pragma once

#include "base/assert.h"
#include "os/mutex.h"
#include "vmem/segment.h"

namespace terrace::vmem {

/// Of the process. Its lock is the innermost of arenas.
class SegmentPool {
 public:
  /// Adds `count` segments to a store; false, and nothing was added, when the system has no memory.
  bool take(SegmentStack& out, std::size_t count) noexcept;
  void give(SegmentStack& in, std::size_t count) noexcept;
  /// 2^shift null pointers; null when the system has no memory.
  Segment** take_table(unsigned shift) noexcept;
  void give_table(Segment** table, unsigned shift) noexcept;

  os::RankedMutex<os::Rank::arena_pool>& mutex() noexcept { return mutex_; }

 private:
  bool grow(std::size_t count) noexcept;

  os::RankedMutex<os::Rank::arena_pool> mutex_;
  Segment& take_one() noexcept;

  SegmentStack segments_;
  Segment* untouched_ = nullptr;  // of the last mapping, from here on
  std::size_t untouched_count_ = 0;
  Segment** tables_[64] = {};  // by shift: those not in use, each with the address of the next in its first entry
};
extern SegmentPool segment_pool;

/// The segments that an arena has at hand, under the arena's lock. An operation reserves what it may need before it changes
/// anything, so that it can not fail half way.
class SegmentStore {
 public:
  static constexpr std::size_t batch = 32;
  static constexpr std::size_t most = 4 * batch;  // of more, a batch goes back to the pool

  /// False when there is no memory for them.
  bool reserve(std::size_t count) noexcept { return segments_.size() >= count || segment_pool.take(segments_, batch); }
  /// Requires a reservation.
  Segment& take() noexcept {
    Segment* const s = segments_.pop();
    TERRACE_ASSERT(s != nullptr, "arena: a segment was not reserved");
    return *s;
  }
  void give(Segment& s) noexcept {
    s.kind = Segment::Kind::unused;
    segments_.push(s);
    if (segments_.size() > most) segment_pool.give(segments_, batch);
  }
  void give_all() noexcept { segment_pool.give(segments_, segments_.size()); }

 private:
  SegmentStack segments_;
};

}  // namespace terrace::vmem
