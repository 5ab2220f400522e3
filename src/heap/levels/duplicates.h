// SPDX-License-Identifier: MIT OR Apache-2.0
// Finds a block that is in a magazine twice. Free compares only the top round, so a magazine is searched before it leaves the
// core level. This reports a double free before the block is allocated twice, unless its copies lie in two magazines: the slabs
// then report it when both have returned.
#pragma once

#include "base/bits.h"
#include "base/types.h"
#include "level/magazine.h"
#include "os/threads.h"

#include <atomic>
#include <bit>
#include <cstring>

namespace terrace::heap {

/// Whether the addresses of the rounds rise or fall throughout, as they do if a program frees in the order of allocation. Stops
/// at the first that does not; 0.2 ns per round. Requires n > 1.
inline bool are_in_order(const std::uint64_t* rounds, unsigned n) noexcept {
  // Addresses have fewer than 63 bits: the highest bit of a difference is its sign. Of falling ones the differences are taken
  // the other way round: a block that comes again is neither.
  const std::uint64_t* const low = rounds[0] < rounds[1] ? rounds : rounds + 1;
  const std::uint64_t* const high = rounds[0] < rounds[1] ? rounds + 1 : rounds;
  using Pair = std::uint64_t __attribute__((vector_size(16)));
  const auto pair_at = [](const std::uint64_t* at) noexcept {
    Pair pair;
    std::memcpy(&pair, at, sizeof pair);
    return pair;
  };
  unsigned i = 0;
  for (; i + 8 < n; i += 8) {
    const Pair negative = (pair_at(low + i) - pair_at(high + i)) & (pair_at(low + i + 2) - pair_at(high + i + 2)) &
                          (pair_at(low + i + 4) - pair_at(high + i + 4)) & (pair_at(low + i + 6) - pair_at(high + i + 6));
    if ((negative[0] & negative[1]) >> 63 == 0) return false;
  }
  for (; i + 1 < n; ++i) {
    if (low[i] >= high[i]) return false;
  }
  return true;
}

/// What the search needs. Not on the stack, since a signal handler's stack may be small.
struct alignas(cache_line) RoundsByHash {
  // Numbers of rounds + 1, which fit since there are at most 253; 0: none.
  std::uint8_t last[2048];                                                       // of each hash
  std::uint8_t before[level::largest_magazine], later[level::largest_magazine];  // of the same hash; those that have one
  std::atomic<const void*> user;  // os::this_thread() of the searching thread, or null

  /// This thread may be in a handler that has interrupted its search, which goes on. relaxed: there is no other.
  void reset_after_fork() noexcept {
    if (user.load(std::memory_order_relaxed) != os::this_thread()) user.store(nullptr, std::memory_order_relaxed);
  }
};
static_assert(level::largest_magazine <= sizeof(RoundsByHash::last) / 8 && level::largest_magazine < 256,
              "a table that is an eighth full at most: few rounds have the same hash");

/// A duplicate block, or null. The first pass links rounds of one hash; no branch in it depends on addresses, since those would
/// be mispredicted. It lists the few rounds that are not the first of their hash; only those are compared. About 1 ns per
/// round.
inline const void* duplicate_by_hash(const std::uint64_t* rounds, unsigned n, RoundsByHash& table) noexcept {
  const unsigned bits = static_cast<unsigned>(std::bit_width(n)) + 3;
  std::memset(table.last, 0, std::size_t{1} << bits);
  unsigned found = 0;
  for (unsigned i = 0; i < n; ++i) {
    std::uint8_t& newest = table.last[(rounds[i] >> 4) * 0x9e3779b97f4a7c15U >> (64 - bits)];
    table.before[i] = newest;
    table.later[found] = static_cast<std::uint8_t>(i);
    found += newest != 0 ? 1 : 0;
    newest = static_cast<std::uint8_t>(i + 1);
  }
  for (unsigned i = 0; i < found; ++i) {
    const std::uint64_t round = rounds[table.later[i]];
    for (unsigned other = table.before[table.later[i]]; other != 0; other = table.before[other - 1]) {
      if (rounds[other - 1] == round) return reinterpret_cast<const void*>(round);  // NOLINT(performance-no-int-to-ptr)
    }
  }
  return nullptr;
}

/// The same in 10 us, without a table.
inline const void* duplicate_by_pairs(const std::uint64_t* rounds, unsigned n) noexcept {
  for (unsigned i = 1; i < n; ++i) {
    for (unsigned other = 0; other < i; ++other) {
      if (rounds[other] == rounds[i]) return reinterpret_cast<const void*>(rounds[i]);  // NOLINT(performance-no-int-to-ptr)
    }
  }
  return nullptr;
}

/// The same with one of `count` tables if one is free, else without. Each core tries a few tables, beginning with its own; all
/// are in use only if threads were preempted, or interrupted by signal handlers, during a search.
inline const void* duplicate_in(level::Magazine m, RoundsByHash* all, unsigned count, unsigned own) noexcept {
  constexpr unsigned tries = 4;
  const unsigned n = m.count();
  if (n < 2 || are_in_order(m.begin(), n)) return nullptr;
  for (unsigned i = 0; i < min_of(count, tries); ++i) {
    RoundsByHash& table = all[(own + i) % count];
    const void* nobody = nullptr;
    // acquire, pairs with the release below: the last user has ended. relaxed on failure: nothing was learned.
    if (!table.user.compare_exchange_strong(nobody, os::this_thread(), std::memory_order_acquire, std::memory_order_relaxed))
      continue;
    const void* const twice = duplicate_by_hash(m.begin(), n, table);
    table.user.store(nullptr, std::memory_order_release);
    return twice;
  }
  return duplicate_by_pairs(m.begin(), n);
}

}  // namespace terrace::heap
