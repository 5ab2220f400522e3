// SPDX-License-Identifier: MIT OR Apache-2.0
// One byte budget for everything that the core, thread and processor levels may hold.
#pragma once

#include <atomic>
#include <cstdint>

namespace terrace::level {

class Budget {
 public:
  void set_limit(std::uint64_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }
  std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
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
  /// For the least that a class needs to work at all: granted beyond the limit.
  void reserve_anyway(std::uint64_t bytes) noexcept { granted_.fetch_add(bytes, std::memory_order_relaxed); }
  void release(std::uint64_t bytes) noexcept { granted_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> granted_{0};
};

}  // namespace terrace::level
