// SPDX-License-Identifier: MIT OR Apache-2.0
// Pairs of an allocation and a free by the names of libumem, beside malloc's in the same process.
//
// umem_pairs MILLISECONDS TURNS SIZE THREADS...      prints one line of JSON: for each number of threads and each of
//   malloc        malloc, free
//   umem_alloc    umem_alloc, umem_free
//   cache         umem_cache_alloc, umem_cache_free of a cache with a constructor and a destructor
// wall/KIND/THREADS, pairs per microsecond of all threads together, and cpu/KIND/THREADS, pairs per microsecond of cpu time: a
// list each, a number for each turn. Kinds and numbers of threads take turns.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <umem.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int batch = 1000;  // pairs between two looks at the flag

struct Total {
  std::atomic<std::uint64_t> pairs = 0;
  std::atomic<std::uint64_t> cpu_ns = 0;
};

std::uint64_t thread_cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

template <class Pair>
void work(const std::atomic<bool>& stop, Total& total, Pair pair) {
  std::uint64_t pairs = 0;
  const std::uint64_t begin = thread_cpu_ns();
  do {  // once at least: a thread may begin when the turn is over
    for (int i = 0; i < batch; ++i) pair();
    pairs += batch;
  } while (!stop.load(std::memory_order_relaxed));
  total.cpu_ns += thread_cpu_ns() - begin;
  total.pairs += pairs;
}

struct Rates {
  double wall, cpu;
};

template <class Pair>
Rates turn(unsigned threads, Clock::duration length, Pair pair) {
  std::atomic<bool> stop = false;
  Total total;
  std::vector<std::thread> running;
  const auto begin = Clock::now();
  for (unsigned i = 0; i < threads; ++i) running.emplace_back([&] { work(stop, total, pair); });
  std::this_thread::sleep_for(length);
  stop = true;
  for (std::thread& t : running) t.join();
  const auto pairs = static_cast<double>(total.pairs);
  return {pairs / Microseconds(Clock::now() - begin).count(), pairs * 1000 / static_cast<double>(total.cpu_ns)};
}

void keep(void* p) { __asm__ volatile("" : : "r"(p) : "memory"); }

int construct(void* object, void*, int) {
  *static_cast<char*>(object) = 1;
  return 0;
}
void destruct(void*, void*) {}

Rates turn_of(int kind, unsigned threads, Clock::duration length, std::size_t size, umem_cache_t* cache) {
  if (kind == 0) {
    return turn(threads, length, [=] {
      void* const p = std::malloc(size);
      keep(p);
      std::free(p);
    });
  }
  if (kind == 1) {
    return turn(threads, length, [=] {
      void* const p = umem_alloc(size, UMEM_DEFAULT);
      keep(p);
      umem_free(p, size);
    });
  }
  return turn(threads, length, [=] {
    void* const p = umem_cache_alloc(cache, UMEM_DEFAULT);
    keep(p);
    umem_cache_free(cache, p);
  });
}

void print(const std::map<std::string, std::vector<double>>& results) {
  const char* separator = "{";
  for (const auto& [name, values] : results) {
    std::printf("%s\"%s\": [", separator, name.c_str());
    for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.4f", i == 0 ? "" : ", ", values[i]);
    std::printf("]");
    separator = ", ";
  }
  std::puts("}");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fputs("usage: umem_pairs MILLISECONDS TURNS SIZE THREADS...\n", stderr);
    return 2;
  }
  const std::chrono::milliseconds length(std::strtol(argv[1], nullptr, 10));
  const unsigned long turns = std::strtoul(argv[2], nullptr, 10);
  const std::size_t size = std::strtoul(argv[3], nullptr, 10);
  char name[] = "bench";
  umem_cache_t* const cache = umem_cache_create(name, size, 0, construct, destruct, nullptr, nullptr, nullptr, 0);
  if (cache == nullptr) {
    std::perror("umem_cache_create");
    return 1;
  }
  constexpr const char* kinds[] = {"malloc", "umem_alloc", "cache"};
  std::map<std::string, std::vector<double>> results;
  for (unsigned long t = 0; t < turns; ++t) {
    for (int i = 4; i < argc; ++i) {
      for (int kind = 0; kind < 3; ++kind) {
        const Rates r = turn_of(kind, static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)), length, size, cache);
        const std::string key = std::string("/") + kinds[kind] + "/" + argv[i];
        results["wall" + key].push_back(r.wall);
        results["cpu" + key].push_back(r.cpu);
      }
    }
  }
  umem_cache_destroy(cache);
  print(results);
}
