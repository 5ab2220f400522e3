// SPDX-License-Identifier: MIT OR Apache-2.0
// "Per-thread caching in libumem" (Robert Mustacchi): malloc and free of one size, over and over.
//
// pair_loop THREADS MILLISECONDS SIZE...      prints one line of JSON, with two numbers per size:
//   ns/SIZE        of a pair as a thread sees it, mean of the threads: their times include waiting for a cpu and for locks
//   cpu_ns/SIZE    of a pair, cpu time only
// A turn lasts a fixed time instead of a fixed number of pairs; the sizes take turns, and the median of the turns counts. With
// one thread it is the process's only one: libraries may leave out what only threads need.
//
// pair_loop THREADS pairs=PAIRS SIZE      the article's loop: each thread does so many pairs of one size; one turn
#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::duration<double, std::nano>;

constexpr std::size_t turns = 3;
constexpr int batch = 1000;  // pairs between two looks at the clock

struct Cost {
  double ns = 0;
  double cpu_ns = 0;
};

double thread_cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

/// When a thread has done enough: after a time, or, without one, after so many pairs.
struct Length {
  Clock::duration time{};
  std::uint64_t pairs = 0;
};

Cost loop(std::size_t size, const Length& length) {
  std::uint64_t pairs = 0;
  const double cpu_begin = thread_cpu_ns();
  const auto begin = Clock::now();
  Clock::time_point now;
  do {
    for (int i = 0; i < batch; ++i) {
      void* const p = std::malloc(size);
      __asm__ volatile("" : : "r"(p) : "memory");
      std::free(p);
    }
    pairs += batch;
    now = Clock::now();
  } while (length.pairs != 0 ? pairs < length.pairs : now - begin < length.time);
  const auto n = static_cast<double>(pairs);
  return {Nanoseconds(now - begin).count() / n, (thread_cpu_ns() - cpu_begin) / n};
}

Cost turn(unsigned threads, std::size_t size, const Length& length) {
  if (threads == 1) return loop(size, length);
  std::vector<Cost> costs(threads);
  std::barrier ready(threads);
  std::vector<std::thread> running;
  running.reserve(threads);
  for (Cost& cost : costs)
    running.emplace_back([&] {
      ready.arrive_and_wait();
      cost = loop(size, length);
    });
  Cost mean;
  for (unsigned i = 0; i < threads; ++i) {
    running[i].join();
    mean.ns += costs[i].ns / threads;
    mean.cpu_ns += costs[i].cpu_ns / threads;
  }
  return mean;
}

double median(const std::array<Cost, turns>& costs, double Cost::*what) {
  std::array<double, turns> values;
  for (std::size_t i = 0; i < turns; ++i) values[i] = costs[i].*what;
  std::sort(values.begin(), values.end());
  return values[turns / 2];
}

}  // namespace

static int whole(unsigned threads, std::uint64_t pairs, std::size_t size) {
  const Cost cost = turn(threads, size, {.pairs = pairs});
  std::printf("{\"ns\": %.4f, \"cpu_ns\": %.4f}\n", cost.ns, cost.cpu_ns);
  return 0;
}

int main(int argc, char** argv) {
  const auto threads = argc > 3 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 0;
  if (threads == 0) {
    std::fputs("usage: pair_loop THREADS MILLISECONDS|pairs=PAIRS SIZE...\n", stderr);
    return 2;
  }
  constexpr std::string_view in_pairs = "pairs=";
  if (std::string_view(argv[2]).starts_with(in_pairs))
    return whole(threads, std::strtoull(argv[2] + in_pairs.size(), nullptr, 10), std::strtoul(argv[3], nullptr, 10));
  const std::chrono::milliseconds length(std::strtol(argv[2], nullptr, 10));
  std::vector<std::size_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoul(argv[i], nullptr, 10));
  std::vector<std::array<Cost, turns>> costs(sizes.size());
  for (std::size_t t = 0; t < turns; ++t)
    for (std::size_t i = 0; i < sizes.size(); ++i) costs[i][t] = turn(threads, sizes[i], {.time = length});
  const char* separator = "{";
  for (std::size_t i = 0; i < sizes.size(); ++i, separator = ", ")
    std::printf("%s\"ns/%zu\": %.4f, \"cpu_ns/%zu\": %.4f", separator, sizes[i], median(costs[i], &Cost::ns), sizes[i],
                median(costs[i], &Cost::cpu_ns));
  std::puts("}");
}
