// SPDX-License-Identifier: MIT OR Apache-2.0
// Which addresses are in somebody's hands right now: one bit per 16 bytes of address space, in pages that are mapped when
// needed.
//
//   claim    after the allocator returned a block, before anybody else learns of it
//   release  before the block goes back
//
// So a bit that is already set at claim means: the allocator gave the same memory to two owners. Bits are set and cleared with
// relaxed operations: the table must not order the threads for the allocator (or for ThreadSanitizer).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace stress {

class LiveRanges {
 public:
  /// Null: claimed. Else an address within [p, p + bytes) that has an owner already.
  const void* claim(const void* p, std::size_t bytes);
  /// Null: released. Else an address within that had no owner.
  const void* release(const void* p, std::size_t bytes);

 private:
  using Word = std::atomic<std::uint64_t>;
  static constexpr unsigned quantum_shift = 4;
  static constexpr unsigned leaf_shift = 26;  // bytes that one leaf describes
  static constexpr unsigned address_bits = 48;
  static constexpr std::size_t words_per_leaf = std::size_t{1} << (leaf_shift - quantum_shift - 6);

  Word& word(std::uint64_t quantum);
  template <class Change>
  const void* for_each_word(const void* p, std::size_t bytes, Change change);

  std::atomic<Word*> leaves_[std::size_t{1} << (address_bits - leaf_shift)];  // zero: static storage only
};

}  // namespace stress
