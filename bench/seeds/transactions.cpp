// SPDX-License-Identifier: MIT OR Apache-2.0
// "malloc for Haswell HTM: index-aware" (Dave Dice): nodes of one size, each allocated by malloc, and transactions that walk
// the ring of them and write a word of each. The cache is a simulated one (l1.h), the addresses are those that malloc gave.
//
// transactions SIZE...     one line of JSON per size:
//   lines            for each of the 64 sets, how many of the 250 nodes have their first line there
//   lru, tree_plru   simulated: part of the transactions over all 250 nodes that abort
//   lru_fits, tree_plru_fits    simulated: how many nodes, in the order of allocation, a transaction may write so that none of
//                    `attempts` aborts (at most 250)
//   rtm, rtm_capacity, rtm_conflict    on a processor with RTM: the part that aborts in real transactions, of it for these
//   reasons
// Between the simulated transactions other work loads `others` lines at random, so that each finds another state of the cache.
#include "l1.h"
#include "rtm.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>

namespace {

constexpr std::size_t nodes = 250;
constexpr int others = 64;
constexpr int attempts = 50;
constexpr int transactions = 1000;
constexpr int real_transactions = 100'000;

struct Node {
  Node* next;
  volatile int w;
};

using Places = std::array<Node*, nodes>;
using Random = std::minstd_rand;  // one word of state, no memory of its own

template <class Cache>
void other_work(Cache& cache, Random& random) {
  for (int i = 0; i < others; ++i) cache.access(random() * l1::line, false);
}

// One attempt; true if it commits.
template <class Cache>
bool transaction(Cache& cache, std::span<Node* const> ring) {
  cache.begin();
  for (const Node* n : ring) {
    if (!cache.access(reinterpret_cast<std::uintptr_t>(n), true)) {
      cache.abort();
      return false;
    }
  }
  cache.commit();
  return true;
}

template <class Replacement>
double aborts(std::span<Node* const> ring, Random random) {
  static l1::Cache<Replacement> cache;
  cache = {};
  int failed = 0;
  for (int i = 0; i < transactions; ++i) {
    other_work(cache, random);
    failed += transaction(cache, ring) ? 0 : 1;
  }
  return static_cast<double>(failed) / transactions;
}

// The order within the transaction is random, as in the ring.
template <class Replacement>
std::size_t fits(const Places& allocated, Random random) {
  static l1::Cache<Replacement> cache;
  for (std::size_t n = 1; n <= nodes; ++n) {
    Places ring = allocated;
    std::shuffle(ring.begin(), ring.begin() + n, random);
    cache = {};
    for (int i = 0; i < attempts; ++i) {
      other_work(cache, random);
      if (!transaction(cache, std::span(ring).first(n))) return n - 1;
    }
  }
  return nodes;
}

struct Real {
  int aborted = 0;
  int capacity = 0;
  int conflict = 0;
};

Real really(Node* ring) {
  Real result;
  for (int i = 0; i < real_transactions; ++i) {
    const unsigned status = rtm::begin();
    if (status == rtm::started) {
      Node* n = ring;
      do {
        n->w = 0;
        n = n->next;
      } while (n != ring);
      rtm::end();
      continue;
    }
    ++result.aborted;
    result.capacity += (status & rtm::status_capacity) != 0 ? 1 : 0;
    result.conflict += (status & rtm::status_conflict) != 0 ? 1 : 0;
  }
  return result;
}

void measure(std::size_t size) {
  Random random(12345);
  Places allocated;
  for (Node*& n : allocated) {
    n = static_cast<Node*>(std::malloc(size));
    if (n == nullptr) std::abort();
  }
  Places ring = allocated;
  std::shuffle(ring.begin(), ring.end(), random);
  for (std::size_t i = 0; i < nodes; ++i) {
    ring[i]->next = ring[(i + 1) % nodes];
    ring[i]->w = 0;
  }

  std::array<int, l1::sets> used{};
  for (const Node* n : allocated) ++used[l1::set_of(reinterpret_cast<std::uintptr_t>(n))];
  std::printf("{\"size\": %zu, \"lines\": [", size);
  for (std::size_t i = 0; i < used.size(); ++i) std::printf("%s%d", i == 0 ? "" : ", ", used[i]);
  std::printf("], \"lru\": %.4f, \"tree_plru\": %.4f, \"lru_fits\": %zu, \"tree_plru_fits\": %zu",
              aborts<l1::Lru>(ring, random), aborts<l1::TreePlru>(ring, random), fits<l1::Lru>(allocated, random),
              fits<l1::TreePlru>(allocated, random));
  if (rtm::usable()) {
    const Real real = really(ring[0]);
    constexpr double all = real_transactions;
    std::printf(", \"rtm\": %.5f, \"rtm_capacity\": %.5f, \"rtm_conflict\": %.5f", real.aborted / all, real.capacity / all,
                real.conflict / all);
  }
  std::printf("}\n");
  std::shuffle(allocated.begin(), allocated.end(), random);
  for (Node* n : allocated) std::free(n);
}

}  // namespace

int main(int argc, char** argv) {
  static char buffer[1 << 14];
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);  // stdio's own would lie between the nodes
  for (int i = 1; i < argc; ++i) measure(std::strtoul(argv[i], nullptr, 10));
}
