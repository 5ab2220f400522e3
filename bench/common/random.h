// SPDX-License-Identifier: MIT OR Apache-2.0
// Random numbers that are the same in every run: splitmix64.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bench {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// A sequence of its own for each thread.
  Random(std::uint64_t seed, std::uint64_t thread) : state_(mix(seed) ^ mix(~thread)) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15U); }
  /// 0 .. n - 1, for n up to 2^32.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((next() >> 32) * n >> 32); }
  std::size_t between(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

/// Mostly small: a power of two between 2^low and 2^high, the lesser of two draws, and something below it on top.
inline std::size_t mostly_small(Random& random, std::size_t low, std::size_t high) {
  const std::size_t a = random.between(low, high - 1);
  const std::size_t b = random.between(low, high - 1);
  const std::size_t power = std::size_t{1} << (a < b ? a : b);
  return power + random.below(power + 1);
}

}  // namespace bench
