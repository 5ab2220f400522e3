// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace stress {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2 + 1) { next(); }

  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1dU >> 11;
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  // Each power of two up to the limit as likely as any other; now and then a boundary exactly.
  std::size_t size(std::size_t limit) {
    unsigned bits = 0;
    while ((std::size_t{2} << bits) <= limit) ++bits;
    const std::uint64_t power = std::uint64_t{1} << below(bits + 1);
    std::uint64_t size = power + below(power);
    if (one_in(8)) size = power + below(3) - 1;
    return size < limit ? size : limit;
  }
  // What programs do: mostly small.
  std::size_t usual_size(std::size_t limit) {
    const std::uint64_t kind = below(100);
    if (kind < 70) return size(limit < 512 ? limit : 512);
    if (kind < 92) return size(limit < 32768 ? limit : 32768);
    if (kind < 98) return size(limit < 262144 ? limit : 262144);
    return size(limit);
  }

 private:
  std::uint64_t state_;
};

}  // namespace stress
