// SPDX-License-Identifier: MIT OR Apache-2.0
// traffic GIVER TAKER: a thread on CPU GIVER allocates, one on CPU TAKER frees, in turn. What is freed collects at TAKER's
// processor, while GIVER's has none: each batch is more than a core holds, so magazines must come from the other processor.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>

namespace {

constexpr std::size_t block_size = 256;  // a class of whole cache lines: its blocks have no home slot
constexpr int batch = 4000;
constexpr int rounds = 40;

void* blocks[batch];
std::atomic<int> turn{0};  // even: the giver's; release by whose turn ends, acquire by the other

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    std::perror("sched_setaffinity");
    std::exit(1);
  }
}

void wait_for(int value) {
  while (turn.load(std::memory_order_acquire) != value) sched_yield();
}

void give(int cpu) {
  pin(cpu);
  for (int i = 0; i < rounds; ++i) {
    wait_for(2 * i);
    for (void*& b : blocks) b = std::malloc(block_size);
    turn.store(2 * i + 1, std::memory_order_release);
  }
}

void take(int cpu) {
  pin(cpu);
  for (int i = 0; i < rounds; ++i) {
    wait_for(2 * i + 1);
    for (void* b : blocks) std::free(b);
    turn.store(2 * i + 2, std::memory_order_release);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: traffic GIVER TAKER\n");
    return 2;
  }
  std::thread giver(give, std::atoi(argv[1]));
  std::thread taker(take, std::atoi(argv[2]));
  giver.join();
  taker.join();
  return 0;
}
