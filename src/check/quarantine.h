// SPDX-License-Identifier: MIT OR Apache-2.0
// Freed blocks in the order in which they were freed, until there are more bytes of them than the bound. A block that waits
// here is nobody's: what is written to it, or a second free of it, is the program's mistake.
#pragma once

#include "base/described.h"
#include "base/types.h"
#include "os/mutex.h"

namespace terrace::check {

class Quarantine {
 public:
  struct Freed {
    std::byte* start = nullptr;
    std::size_t size = 0;
  };

  /// False: no memory.
  bool open(std::uint64_t bound) noexcept;
  /// Whether a block of that size should wait here at all: one alone may not drive out all others.
  bool takes(std::size_t size) const noexcept { return size <= bound_ / 4; }
  /// Requires takes(block.size). False: the ring is full. Call evict() until nothing leaves.
  bool put(Freed block) noexcept;
  /// The oldest block, as long as there are too many; start is null if not.
  Freed evict() noexcept;

  /// Calls look(block) for all that wait, until it says true; the block is copied then. No block leaves meanwhile.
  template <class Look>
  bool find(Freed& copy, Look look) noexcept {
    const os::LockGuard guard(mutex_);
    for (std::uint64_t i = first_; i != end_; ++i) {
      if (!look(ring_[i % capacity])) continue;
      copy = ring_[i % capacity];
      return true;
    }
    return false;
  }

  os::RankedMutex<os::Rank::quarantine>& mutex() noexcept { return mutex_; }

 private:
  friend struct introspect::Layout;
  static constexpr std::uint64_t capacity = 1 << 17;  // entries; blocks of few bytes reach it first
  static constexpr std::uint64_t headroom = 1 << 10;  // threads that have put and not yet evicted

  os::RankedMutex<os::Rank::quarantine> mutex_;
  Freed* ring_ = nullptr;
  std::uint64_t first_ = 0, end_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t bound_ = 0;  // set once
};

}  // namespace terrace::check
