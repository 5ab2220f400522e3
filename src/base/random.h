// SPDX-License-Identifier: MIT OR Apache-2.0
// Numbers that are hard to guess from outside, not from others of them.
#pragma once

#include <cstdint>

namespace terrace {

/// The finisher of splitmix64 (G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// One thread's, or under a lock.
class Random {
 public:
  void seed(std::uint64_t value) noexcept { state_ = value; }
  /// 0 to bound - 1. Requires 0 < bound < 2^32.
  std::uint32_t below(std::uint32_t bound) noexcept {
    state_ += 0x9e3779b97f4a7c15U;
    return static_cast<std::uint32_t>((mixed(state_) >> 32) * bound >> 32);
  }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace terrace
