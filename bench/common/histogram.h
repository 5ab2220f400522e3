// SPDX-License-Identifier: MIT OR Apache-2.0
// How often which time was measured: 16 buckets per power of two, so a bucket is at most 1/16 wide. A plain array: put
// anywhere, it needs no memory besides.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace bench {

class Histogram {
 public:
  void add(std::uint64_t value) { ++counts_[bucket(value)]; }

  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }

  std::uint64_t count() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : counts_) sum += n;
    return sum;
  }

  /// The value that a share `part` of all values does not exceed; 0 if there are none.
  double quantile(double part) const {
    const double wanted = part * static_cast<double>(count());
    double seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += static_cast<double>(counts_[i]);
      if (counts_[i] > 0 && seen >= wanted) return middle(i);
    }
    return 0;
  }

 private:
  static constexpr unsigned bits = 4;
  static constexpr std::size_t steps = std::size_t{1} << bits;

  // Below 2 * steps every value has a bucket of its own.
  static std::size_t bucket(std::uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > bits + 1 ? width - bits - 1 : 0;
    return shift * steps + static_cast<std::size_t>(value >> shift);
  }
  static double middle(std::size_t i) {
    if (i < 2 * steps) return static_cast<double>(i);
    const std::size_t shift = i / steps - 1;
    const double first = static_cast<double>(i % steps + steps);
    return (first + 0.5) * static_cast<double>(std::uint64_t{1} << shift);
  }

  std::array<std::uint64_t, (64 - bits) * steps + steps> counts_{};
};

}  // namespace bench
