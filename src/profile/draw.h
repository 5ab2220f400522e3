// SPDX-License-Identifier: MIT OR Apache-2.0
// Which allocations are sampled: a Poisson process over bytes. An allocation of `size` bytes is sampled with probability
// 1 - exp(-size / period), independently of every other; so a sample stands for 1 / (1 - exp(-size / period)) allocations.
//
// Two ways to draw the same:
//   one by one        a distance in bytes is drawn, and compared with the size
//   for a run of them the same distance, divided by their one size: how many of them come before the sampled one, it included
#pragma once

#include <bit>
#include <cstdint>

namespace terrace::profile {

/// The natural logarithm of x in (0, 1], to 1e-9: libm is not to be had.
constexpr double natural_log(double x) noexcept {
  constexpr double ln2 = 0.693147180559945309, sqrt2 = 1.41421356237309505;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffff) | std::uint64_t{1023} << 52);  // 1 to 2
  if (m > sqrt2) {
    m /= 2;
    ++exponent;
  }
  const double t = (m - 1) / (m + 1), t2 = t * t;  // |t| < 0.172
  const double series = 1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 * (1.0 / 7 + t2 * (1.0 / 9 + t2 * (1.0 / 11)))));
  return exponent * ln2 + 2 * t * series;
}

/// In (0, 1], of 64 bits that are equally likely.
constexpr double share(std::uint64_t random) noexcept {
  constexpr double step = 1.0 / 9007199254740992.0;  // 2^-53
  return static_cast<double>((random >> 11) + 1) * step;
}

/// A distance of mean `period` (exponential).
constexpr double distance(std::uint64_t random, std::uint64_t period) noexcept {
  return -natural_log(share(random)) * static_cast<double>(period);
}

/// Whether an allocation is sampled.
constexpr bool is_drawn(std::uint64_t random, std::uint64_t size, std::uint64_t period) noexcept {
  const auto mean = static_cast<double>(period), below = static_cast<double>(size);
  // Most are not, and need no logarithm: -ln(x) >= 1 - x.
  return (1 - share(random)) * mean < below && distance(random, period) < below;
}

/// Of allocations of one size, the number of the first that is sampled, from 1. Requires size > 0.
constexpr std::uint64_t first_drawn(std::uint64_t random, std::uint64_t size, std::uint64_t period) noexcept {
  constexpr double most = 4611686018427387904.0;  // 2^62
  const double n = distance(random, period) / static_cast<double>(size);
  return n < most ? static_cast<std::uint64_t>(n) + 1 : std::uint64_t{1} << 62;
}

/// 1 - exp(-x) for x > 0, to 1e-9 of it.
constexpr double one_minus_exp(double x) noexcept {
  constexpr double all = 40, small = 1.0 / 32;
  if (x > all) return 1;
  int halvings = 0;
  for (; x > small; ++halvings) x /= 2;
  double y = x * (1 - x * (1.0 / 2) * (1 - x * (1.0 / 3) * (1 - x * (1.0 / 4) * (1 - x * (1.0 / 5)))));
  for (; halvings != 0; --halvings) y *= 2 - y;  // of x, then of 2 x
  return y;
}

/// The bytes that a sample of `size` stands for, which was drawn by `weighed`. Requires period > 0.
constexpr std::uint64_t bytes_estimated(std::uint64_t size, std::uint64_t weighed, std::uint64_t period) noexcept {
  const double chance = one_minus_exp(static_cast<double>(weighed) / static_cast<double>(period));
  return static_cast<std::uint64_t>(static_cast<double>(size) / chance + 0.5);
}

/// The calling thread's next 64 bits. A signal handler in between may draw the same: no harm.
std::uint64_t next_random() noexcept;

}  // namespace terrace::profile
