// SPDX-License-Identifier: MIT OR Apache-2.0
// A clock for single calls: the time-stamp counter on x86-64, fenced, so that a call's instructions lie between the two
// readings; the system's clock elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>

namespace bench {

inline std::uint64_t nanoseconds_now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

#if defined(__x86_64__)
inline std::uint64_t ticks_now() {
  __builtin_ia32_lfence();
  const std::uint64_t t = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return t;
}
#else
inline std::uint64_t ticks_now() { return nanoseconds_now(); }
#endif

struct Ticks {
  double per_nanosecond = 1;
  std::uint64_t of_nothing = 0;  // between two readings with nothing in between: not the call's

  static Ticks calibrated() {
    constexpr std::uint64_t long_enough = 20'000'000;
    const std::uint64_t begin = nanoseconds_now();
    const std::uint64_t ticks = ticks_now();
    std::uint64_t now = begin;
    while (now - begin < long_enough) now = nanoseconds_now();
    Ticks result;
    result.per_nanosecond = static_cast<double>(ticks_now() - ticks) / static_cast<double>(now - begin);
    std::array<std::uint64_t, 1001> nothing;
    for (std::uint64_t& n : nothing) {
      const std::uint64_t start = ticks_now();
      n = ticks_now() - start;
    }
    std::sort(nothing.begin(), nothing.end());
    result.of_nothing = nothing[nothing.size() / 2];
    return result;
  }
};

}  // namespace bench
