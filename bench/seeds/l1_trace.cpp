// SPDX-License-Identifier: MIT OR Apache-2.0
// A recorded transaction on the simulated cache of l1.h: reads lines "r ADDRESS" and "w ADDRESS" (hexadecimal) from standard
// input, writes one line of JSON: how many accesses went well before the transaction aborts, by replacement policy (all, if it
// commits).
#include "l1.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>

namespace {

template <class Replacement>
class Run {
 public:
  Run() { cache_.begin(); }
  void access(std::uintptr_t address, bool write) {
    if (aborted_) return;
    if (cache_.access(address, write))
      ++passed_;
    else
      aborted_ = true;
  }
  unsigned long passed() const { return passed_; }

 private:
  l1::Cache<Replacement> cache_;
  unsigned long passed_ = 0;
  bool aborted_ = false;
};

}  // namespace

int main() {
  static Run<l1::Lru> lru;
  static Run<l1::TreePlru> tree_plru;
  char kind = 0;
  std::uintptr_t address = 0;
  int got = 0;
  while ((got = std::scanf(" %c %" SCNxPTR, &kind, &address)) == 2) {
    if (kind != 'r' && kind != 'w') return 1;
    lru.access(address, kind == 'w');
    tree_plru.access(address, kind == 'w');
  }
  if (got != EOF) return 1;
  std::printf("{\"lru\": %lu, \"tree_plru\": %lu}\n", lru.passed(), tree_plru.passed());
}
