// SPDX-License-Identifier: MIT OR Apache-2.0
// "malloc for Haswell HTM: index-aware" (Dave Dice): 250 nodes of one size, each allocated by malloc, linked to a ring in
// random order; the time of a step that writes a word of the node and goes on to the next.
//
// ring SIZE...      one line of JSON per size:
//   ns              per step, in the ring that malloc made
//   by_hand_ns      per step, in a ring of the same shape, laid out by hand an odd number of cache lines apart
//   sets, fullest   how many of 64 sets of a first-level cache the nodes' lines fall into, and how many into the fullest
// The two rings are walked in turn, and the median of the turns is taken of each.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <sys/mman.h>
#include <vector>

namespace {

constexpr std::size_t nodes = 250;
constexpr std::size_t line = 64;
constexpr std::size_t sets = 64;
constexpr int turns = 7;
constexpr int steps = 200'000;

struct Node {
  Node* next;
  volatile int w;
};

using Places = std::array<void*, nodes>;

Node* link(const Places& places, const std::array<std::size_t, nodes>& order) {
  for (std::size_t i = 0; i < nodes; ++i)
    static_cast<Node*>(places[order[i]])->next = static_cast<Node*>(places[order[(i + 1) % nodes]]);
  return static_cast<Node*>(places[order[0]]);
}

double nanoseconds_per_step(Node* n) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    n->w = 0;
    n = n->next;
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  __asm__ volatile("" : : "r"(n));
  return took.count() / steps;
}

double median(std::array<double, turns> values) {
  std::sort(values.begin(), values.end());
  return values[turns / 2];
}

void measure(std::size_t size, std::mt19937_64& random) {
  Places by_malloc;
  Places by_hand;
  for (void*& p : by_malloc) p = std::malloc(size);
  const std::size_t stride = ((size + line - 1) / line | 1) * line;
  const std::size_t bytes = stride * nodes;
  auto* const area = static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (area == MAP_FAILED) std::abort();
  for (std::size_t i = 0; i < nodes; ++i) by_hand[i] = area + i * stride;

  std::array<std::size_t, nodes> order;
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);  // against prefetchers that see a stride
  Node* const a = link(by_malloc, order);
  Node* const b = link(by_hand, order);

  std::array<double, turns> ours;
  std::array<double, turns> reference;
  nanoseconds_per_step(a);
  nanoseconds_per_step(b);
  for (int t = 0; t < turns; ++t) {
    ours[t] = nanoseconds_per_step(a);
    reference[t] = nanoseconds_per_step(b);
  }

  std::array<int, sets> used{};
  for (const void* p : by_malloc) ++used[reinterpret_cast<std::uintptr_t>(p) / line % sets];
  std::printf("{\"size\": %zu, \"ns\": %.4f, \"by_hand_ns\": %.4f, \"sets\": %zu, \"fullest\": %d}\n", size, median(ours),
              median(reference), sets - static_cast<std::size_t>(std::count(used.begin(), used.end(), 0)),
              *std::max_element(used.begin(), used.end()));

  std::shuffle(by_malloc.begin(), by_malloc.end(), random);
  for (void* p : by_malloc) std::free(p);
  munmap(area, bytes);
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937_64 random(12345);
  for (int i = 1; i < argc; ++i) measure(std::strtoul(argv[i], nullptr, 10), random);
}
