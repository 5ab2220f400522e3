// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantum caches: pieces that the program has freed and may want again, one stack for each multiple of the quantum up to the
// largest size that is cached. What is in them counts as allocated, so no neighbour merges with it; taking it takes no search.
// All of it is under the arena's lock.
//
// Invariant: the segments in the stack of n quanta are cached and of exactly that size, at most `most_pieces`.
#pragma once

#include "base/bits.h"
#include "base/counter.h"
#include "vmem/segment.h"

#include <bit>

namespace terrace::vmem {

class QuantumCaches {
 public:
  static constexpr std::size_t most_sizes = 16;
  static constexpr std::size_t most_pieces = 16;

  /// Sizes up to `most_bytes`, and up to most_sizes quanta. Less than a quantum: nothing is cached.
  QuantumCaches(std::size_t quantum, std::size_t most_bytes) noexcept
      : shift_(static_cast<unsigned>(std::countr_zero(quantum))), sizes_(min_of(most_bytes >> shift_, most_sizes)) {}

  /// A piece of `size` bytes, a multiple of the quantum and not 0. Null when there is none.
  Segment* take(std::size_t size) noexcept { return size >> shift_ <= sizes_ ? pop((size >> shift_) - 1) : nullptr; }
  /// Any piece; null when all are empty.
  Segment* take_any() noexcept {
    for (std::size_t i = 0; i < sizes_; ++i) {
      if (Segment* const s = pop(i)) return s;
    }
    return nullptr;
  }
  /// False: not of a size that is cached, or there are enough of it.
  bool put(Segment& s) noexcept {
    const std::size_t i = (s.size >> shift_) - 1;
    if (i >= sizes_ || stacks_[i].pieces == most_pieces) return false;
    s.kind = Segment::Kind::cached;
    s.left = stacks_[i].head;
    stacks_[i].head = &s;
    ++stacks_[i].pieces;
    bytes_.add(s.size);
    return true;
  }
  std::uint64_t bytes() const noexcept { return bytes_.read(); }

  /// What does not hold, or null. Adds what it holds to `pieces`.
  const char* check(std::size_t& pieces) const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < most_sizes; ++i) {
      std::size_t n = 0;
      for (const Segment* s = stacks_[i].head; s != nullptr; s = s->left, ++n) {
        if (i >= sizes_ || s->kind != Segment::Kind::cached || s->size != (i + 1) << shift_)
          return "A5: a quantum cache has what is not of its size";
        bytes += s->size;
      }
      if (n != stacks_[i].pieces || n > most_pieces) return "A5: a quantum cache has another number of pieces";
      pieces += n;
    }
    return bytes == bytes_.read() ? nullptr : "A5: quantum caches hold other bytes than they count";
  }

 private:
  friend struct umem::Layout;
  struct Stack {
    Segment* head = nullptr;
    std::size_t pieces = 0;
  };

  Segment* pop(std::size_t i) noexcept {
    Segment* const s = stacks_[i].head;
    if (s == nullptr) return nullptr;
    stacks_[i].head = s->left;
    --stacks_[i].pieces;
    bytes_.add(0 - s->size);
    s->kind = Segment::Kind::allocated;
    return s;
  }

  const unsigned shift_;
  const std::size_t sizes_;
  Stack stacks_[most_sizes];
  LockedCounter bytes_;  // modulo 2^64
};

}  // namespace terrace::vmem
