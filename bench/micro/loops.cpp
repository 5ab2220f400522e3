// SPDX-License-Identifier: MIT OR Apache-2.0
// The time of malloc and free alone, in loops: blocks of one size taken and freed in turn, in batches, or first in first out.
// A byte is written into each block. One case per process.
//
//   bench_loops pairs|batch|fifo BLOCKS SIZE MILLISECONDS     one line of JSON: ns of a pair of malloc and free
//
// The CPU time of the loop's second half: in the first, caches, caps and what is kept for reuse find their level.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

double cpu_nanoseconds() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void* taken(std::size_t size) {
  void* const p = std::malloc(size);
  if (p == nullptr) {
    std::fprintf(stderr, "no memory\n");
    std::exit(1);
  }
  *static_cast<volatile char*>(p) = 1;
  return p;
}

void pair(std::vector<void*>&, std::size_t size) { std::free(taken(size)); }

void batch(std::vector<void*>& blocks, std::size_t size) {
  for (void*& p : blocks) p = taken(size);
  for (void* const p : blocks) std::free(p);
}

void first_in_first_out(std::vector<void*>& blocks, std::size_t size) {
  for (void*& p : blocks) {
    std::free(p);
    p = taken(size);
  }
}

// Nanoseconds of one of `operations`, which each call of work() does.
template <typename Work>
double measured(double milliseconds, std::size_t operations, Work work) {
  const std::size_t calls = operations < 10000 ? 10000 / operations : 1;  // between two looks at the clock
  const double start = cpu_nanoseconds(), half = start + milliseconds * 5e5, end = start + milliseconds * 1e6;
  double from = start, now = start;
  std::size_t done = 0;
  while (now < end || done == 0) {
    for (std::size_t i = 0; i < calls; ++i) work();
    now = cpu_nanoseconds();
    if (from < half) {
      from = now;
    } else {
      done += calls * operations;
    }
  }
  return (now - from) / static_cast<double>(done);
}

using Loop = void(std::vector<void*>&, std::size_t);

Loop* loop_called(const std::string& name) {
  if (name == "pairs") return pair;
  if (name == "batch") return batch;
  return name == "fifo" ? first_in_first_out : nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Loop* const loop = argc == 5 ? loop_called(argv[1]) : nullptr;
  const std::size_t blocks = loop != nullptr ? std::strtoul(argv[2], nullptr, 10) : 0;
  const std::size_t size = loop != nullptr ? std::strtoul(argv[3], nullptr, 10) : 0;
  if (blocks == 0 || size == 0) {
    std::fprintf(stderr, "usage: bench_loops pairs|batch|fifo BLOCKS SIZE MILLISECONDS\n");
    return 2;
  }
  std::vector<void*> held(blocks);
  const std::size_t operations = loop == pair ? 1 : blocks;
  std::printf("{\"ns\": %.3f}\n", measured(std::atof(argv[4]), operations, [&] { loop(held, size); }));
  return 0;
}
