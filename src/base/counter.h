// SPDX-License-Identifier: MIT OR Apache-2.0
// Counters that other threads, a debugger or a signal handler may read at any moment.
#pragma once

#include <atomic>
#include <cstdint>

namespace terrace {

/// Event count written under a lock: one writer at a time, any number of readers.
class LockedCounter {
 public:
  /// The caller holds the lock that guards this counter. Load + store, no lock prefix.
  void add(std::uint64_t n = 1) noexcept {
    // relaxed: readers want a recent number, nothing is published through it.
    v_.store(v_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t read() const noexcept { return v_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> v_{0};
};

/// Event count written by anybody, on slow paths only.
class SharedCounter {
 public:
  /// What it was before.
  std::uint64_t add(std::uint64_t n = 1) noexcept {
    return v_.fetch_add(n, std::memory_order_relaxed);  // relaxed: as above
  }
  void sub(std::uint64_t n) noexcept {
    v_.fetch_sub(n, std::memory_order_relaxed);  // relaxed: as above
  }
  std::uint64_t read() const noexcept { return v_.load(std::memory_order_relaxed); }
  void set(std::uint64_t n) noexcept { v_.store(n, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> v_{0};
};

}  // namespace terrace
