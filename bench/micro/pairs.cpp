// SPDX-License-Identifier: MIT OR Apache-2.0
// Pairs of malloc and free, singly and in batches, by one or several threads, on whatever malloc the process has.
//
//   pairs/SIZE/BATCH/threads:N   allocate BATCH blocks of SIZE bytes, write one byte into each, free them in the same order
//   control/BATCH/threads:N      the same loop on a private array instead of malloc: what the machine does to such a loop
//   calls/BATCH/threads:N        the same loop on functions that do nothing, in a shared object: no malloc can be faster
//
// Counter `ns`: nanoseconds per pair for one thread, whatever the number of threads.
#include "empty.h"

#include <array>
#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdlib>
#include <thread>

namespace {

constexpr std::size_t longest_batch = 256;
constexpr std::size_t pairs_per_iteration = 2048;

template <typename Allocate, typename Release>
void run(benchmark::State& state, std::size_t batch, Allocate allocate, Release release) {
  std::array<void*, longest_batch> blocks{};
  for (auto _ : state) {
    for (std::size_t done = 0; done < pairs_per_iteration; done += batch) {
      for (std::size_t i = 0; i < batch; ++i) {
        blocks[i] = allocate();
        *static_cast<volatile char*>(blocks[i]) = 1;
      }
      for (std::size_t i = 0; i < batch; ++i) release(blocks[i]);
    }
  }
  const auto pairs = static_cast<double>(state.iterations()) * pairs_per_iteration;
  state.counters["ns"] = benchmark::Counter(pairs * 1e-9, benchmark::Counter::kAvgThreadsRate | benchmark::Counter::kInvert);
}

void pairs(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  run(
      state, static_cast<std::size_t>(state.range(1)), [size] { return std::malloc(size); }, [](void* p) { std::free(p); });
}

void control(benchmark::State& state) {
  struct Node {
    Node* next;
    char padding[56];
  };
  std::array<Node, longest_batch> nodes{};
  Node* head = nullptr;
  for (Node& n : nodes) {
    n.next = head;
    head = &n;
  }
  run(
      state, static_cast<std::size_t>(state.range(0)),
      [&]() -> void* {
        Node* const n = head;
        head = n->next;
        benchmark::DoNotOptimize(head);
        return n->padding;
      },
      [&](void* p) {
        auto* const n = reinterpret_cast<Node*>(static_cast<char*>(p) - offsetof(Node, padding));
        n->next = head;
        head = n;
        benchmark::DoNotOptimize(head);
      });
}

void calls(benchmark::State& state) {
  alignas(64) char block[64];
  run(
      state, static_cast<std::size_t>(state.range(0)), [&block] { return bench_empty_malloc(block); }, bench_empty_free);
}

void thread_counts(benchmark::internal::Benchmark* b) {
  b->UseRealTime()->Threads(1);
  if (const auto cpus = static_cast<int>(std::thread::hardware_concurrency()); cpus > 1) b->Threads(cpus);
}

BENCHMARK(pairs)->ArgsProduct({{16, 48, 256, 1024}, {1, 32}})->Apply(thread_counts);
BENCHMARK(control)->Arg(1)->Arg(32)->Apply(thread_counts);
BENCHMARK(calls)->Arg(1)->Arg(32)->Apply(thread_counts);

}  // namespace

BENCHMARK_MAIN();
