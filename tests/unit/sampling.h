// SPDX-License-Identifier: MIT OR Apache-2.0
// What tests of the heap profiler's estimates share.
#pragma once

#include "heap/heap.h"
#include "terrace/malloc.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sched.h>
#include <vector>

namespace terrace {

using profile::profiler;
inline constexpr double sigmas = 6;

inline double probability(std::uint64_t size, std::uint64_t period) {
  return -std::expm1(-static_cast<double>(size) / static_cast<double>(period));
}

inline std::uint64_t taken() { return profiler.counters().taken.load(); }
inline std::uint64_t dropped() { return profiler.counters().dropped.load(); }

/// Blocks by site, as the test knows them.
struct Site {
  std::size_t size = 0;
  std::vector<void*> blocks;
};

// Every slot that this thread may come to takes a slow path, and so sees the new period.
inline void start(std::uint64_t period) {
  constexpr std::size_t unusual = 10'000;
  profiler.set_period(period);
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) continue;
    std::vector<void*> blocks(600);
    for (void*& p : blocks) p = terrace_malloc(unusual);
    for (void* const p : blocks) terrace_free(p);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

class Sampling : public testing::Test {
 protected:
  void SetUp() override { terrace_free(terrace_malloc(1)); }
  void TearDown() override {
    profiler.set_period(0);
    EXPECT_EQ(profiler.counters().lost.load(), 0U);
    EXPECT_EQ(heap::heap.check_invariants(), nullptr);
  }
};

/// `held_in_a_run` says of how many of its sites the estimate lies within three standard errors.
template <class Run>
void expect_estimates_hold(std::size_t sites, Run held_in_a_run) {
  const char* const wanted = std::getenv("TERRACE_PROOF_RUNS");
  const int runs = wanted != nullptr ? std::atoi(wanted) : 3;
  unsigned held = 0;
  for (int run = 0; run < runs; ++run) held += held_in_a_run();
  // Beyond three standard errors are 0.3 % by chance: 1 % may be, and with few runs six standard errors of that.
  const double all = runs * static_cast<double>(sites), strays = 0.003 * all;
  EXPECT_LE(all - held, std::max(all / 100, strays + sigmas * std::sqrt(strays) + 1));
  std::printf("%u of %.0f estimates within three standard errors\n", held, all);
}

}  // namespace terrace
