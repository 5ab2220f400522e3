// SPDX-License-Identifier: MIT OR Apache-2.0
// A simulated first-level data cache of the i7-4770 that runs transactions: 32 KiB, 8 ways, 64 sets, lines of 64 bytes, the set
// chosen by bits 6 to 11 of the address, no prefetcher.
//
// What a transaction has written must stay in this cache; when such a line is displaced, by a load or a store, the transaction
// aborts, and its written lines are dropped. What it has only read may be displaced: the processor goes on tracking it further
// out, and these outer levels (256 KiB and 8 MiB) are not simulated, for no experiment reads that much. Sources: the article
// ("tracks the transactional write-set in the L1 and the read-set over the cache hierarchy"); Dice, Harris, Kogan, Lev, The
// Influence of Malloc Placement on TSX Hardware Transactional Memory, arXiv:1504.04640; Intel's optimisation manual, "TSX
// capacity": a ninth written line of one set aborts. The replacement policy is undocumented; Abel and Reineke, nanoBench
// (ISPASS 2020), measured tree-PLRU in the first-level caches of these generations. LRU is the kindest policy: it keeps any 8
// lines.
//
// Not simulated, so the real rate is higher: interrupts, other threads of the core or of other cores, page faults, the
// instructions a transaction must not contain.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace l1 {

inline constexpr std::size_t line = 64;
inline constexpr std::size_t sets = 64;
inline constexpr std::size_t ways = 8;

inline std::size_t set_of(std::uintptr_t address) { return address / line % sets; }

// The ways in the order of their last use.
class Lru {
 public:
  Lru() { std::iota(order_.begin(), order_.end(), std::uint8_t{0}); }
  void use(std::size_t way) {
    const auto at = std::find(order_.begin(), order_.end(), way);
    std::rotate(at, at + 1, order_.end());
  }
  std::size_t victim() const { return order_.front(); }

 private:
  std::array<std::uint8_t, ways> order_;  // the first was used longest ago
};

// A binary tree over the ways. Each of its 7 nodes points to the half that was not used last; the pointers lead to the victim.
class TreePlru {
 public:
  void use(std::size_t way) {
    for (std::size_t node = way + ways; node > 1; node /= 2) right_[node / 2] = node % 2 == 0;
  }
  std::size_t victim() const {
    std::size_t node = 1;
    while (node < ways) node = 2 * node + (right_[node] ? 1 : 0);
    return node - ways;
  }

 private:
  std::array<bool, ways> right_{};  // node n has the children 2 n and 2 n + 1; ways are the children of the last row
};

template <class Replacement>
class Cache {
 public:
  // Whether no line written in this transaction was displaced.
  bool access(std::uintptr_t address, bool write) {
    Set& set = sets_[set_of(address)];
    const std::uintptr_t tag = address / line;
    std::size_t way = find(set, tag);
    bool kept = true;
    if (way == ways) {
      way = room(set);
      kept = !set.lines[way].written;
      set.lines[way] = {tag, true, false};
    }
    set.lines[way].written |= write && inside_;
    set.replacement.use(way);
    return kept;
  }

  void begin() { inside_ = true; }

  void commit() {
    each([](Line& l) { l.written = false; });
    inside_ = false;
  }

  void abort() {
    each([](Line& l) {
      if (l.written) l = {};
    });
    inside_ = false;
  }

  // Lines present in a set: the ones that `address` competes with, itself included.
  std::size_t present(std::uintptr_t address) const {
    const auto& lines = sets_[set_of(address)].lines;
    return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), [](const Line& l) { return l.valid; }));
  }
  bool holds(std::uintptr_t address) const { return find(sets_[set_of(address)], address / line) != ways; }

 private:
  struct Line {
    std::uintptr_t tag = 0;
    bool valid = false;
    bool written = false;  // in the transaction that runs
  };
  struct Set {
    std::array<Line, ways> lines;
    Replacement replacement;
  };

  static std::size_t find(const Set& set, std::uintptr_t tag) {
    std::size_t way = 0;
    while (way < ways && !(set.lines[way].valid && set.lines[way].tag == tag)) ++way;
    return way;
  }

  // An empty way before any victim.
  static std::size_t room(const Set& set) {
    for (std::size_t way = 0; way < ways; ++way)
      if (!set.lines[way].valid) return way;
    return set.replacement.victim();
  }

  template <class F>
  void each(F f) {
    for (Set& set : sets_)
      for (Line& l : set.lines) f(l);
  }

  std::array<Set, sets> sets_;
  bool inside_ = false;
};

}  // namespace l1
