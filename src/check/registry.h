// SPDX-License-Identifier: MIT OR Apache-2.0
// Every checked block, by address, apart from the blocks: what a program writes wrongly can not change what is known of it.
//
// A hash table of lists with locks over stripes of it. Invariants
//   R1  a block is in the table from before the program gets it until before its memory goes back to the heap.
//   R2  while a block is in the table its zones hold their byte, unless the program has written there.
//   R3  each change is one store of a link, after all else is written: a forked child finds whole lists whatever the parent's
//       other threads were doing.
#pragma once

#include "base/bits.h"
#include "base/described.h"
#include "base/types.h"
#include "os/mutex.h"

namespace terrace::check {

enum class State : std::uint8_t { live, freed };

struct Block {
  Block* next = nullptr;
  std::byte* start = nullptr;  // what the program has
  std::size_t size = 0;        // what it asked for
  std::uint8_t align_log2 = 0;
  State state = State::live;

  std::size_t align() const noexcept { return std::size_t{1} << align_log2; }
};

class Registry {
 public:
  /// False: no memory.
  bool open() noexcept;
  /// False: no memory; nothing was added.
  bool add(const Block& block) noexcept;
  void remove(const std::byte* start) noexcept;

  /// A copy of what is known of the block that starts there, after change(block) under its lock. False: there is none.
  template <class Change>
  bool find(const void* start, Block& copy, Change change) noexcept {
    const std::size_t bucket = bucket_of(start);
    const os::LockGuard guard(stripe(bucket).mutex);
    for (Block* b = buckets_[bucket]; b != nullptr; b = b->next) {
      if (b->start != start) continue;
      change(*b);
      copy = *b;
      return true;
    }
    return false;
  }

  /// Looks at all blocks, each stripe under its lock, until look(block) says true; the block is copied then.
  template <class Look>
  bool find_any(Block& copy, Look look) noexcept {
    for (std::size_t s = 0; s < stripe_count; ++s) {
      const os::LockGuard guard(stripes_[s].mutex);
      for (std::size_t i = 0; stripes_[s].blocks != 0 && i < stripe_buckets; ++i) {
        for (const Block* b = buckets_[s * stripe_buckets + i]; b != nullptr; b = b->next) {
          if (!look(*b)) continue;
          copy = *b;
          return true;
        }
      }
    }
    return false;
  }

  void lock_all() noexcept;
  void unlock_all() noexcept;
  void reset_after_fork() noexcept;

 private:
  friend struct introspect::Layout;
  static constexpr unsigned bucket_bits = 18;
  static constexpr std::size_t bucket_count = std::size_t{1} << bucket_bits;
  static constexpr std::size_t stripe_count = 64;
  static constexpr std::size_t stripe_buckets = bucket_count / stripe_count;
  struct alignas(cache_line) Stripe {
    os::RankedMutex<os::Rank::registry> mutex;     // guards `stripe_buckets` buckets in a row, and:
    Block* unused = nullptr;                       // a list
    Block *fresh = nullptr, *fresh_end = nullptr;  // of the newest chunk: never used
    std::size_t blocks = 0;
  };

  static std::size_t bucket_of(const void* p) noexcept {
    return static_cast<std::size_t>(address_of(p) / 16 * 0x9e3779b97f4a7c15U >> (64 - bucket_bits));
  }
  Stripe& stripe(std::size_t bucket) noexcept { return stripes_[bucket / stripe_buckets]; }
  static Block* unused_entry(Stripe& s) noexcept;

  Block** buckets_ = nullptr;
  Stripe stripes_[stripe_count];
};

}  // namespace terrace::check
