// SPDX-License-Identifier: MIT OR Apache-2.0
#include "live_ranges.h"

#include "report.h"

#include <bit>
#include <iterator>
#include <sys/mman.h>

namespace stress {

LiveRanges::Word& LiveRanges::word(std::uint64_t quantum) {
  const std::uint64_t leaf = quantum >> (leaf_shift - quantum_shift);
  if (leaf >= std::size(leaves_)) fail("an address beyond %u bits", address_bits);
  // acquire, pairs with the release below: the leaf is mapped.
  Word* words = leaves_[leaf].load(std::memory_order_acquire);
  if (words == nullptr) {
    Word* const fresh = mapped<Word>(words_per_leaf);
    if (leaves_[leaf].compare_exchange_strong(words, fresh, std::memory_order_acq_rel)) {
      words = fresh;
    } else {
      munmap(static_cast<void*>(fresh), words_per_leaf * sizeof(Word));
    }
  }
  return words[(quantum >> 6) & (words_per_leaf - 1)];
}

// change(word, mask) returns the bits of mask that were wrong.
template <class Change>
const void* LiveRanges::for_each_word(const void* p, std::size_t bytes, Change change) {
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(p) >> quantum_shift;
  const std::uint64_t end = (reinterpret_cast<std::uintptr_t>(p) + (bytes == 0 ? 1 : bytes) + 15) >> quantum_shift;
  std::uint64_t wrong = 0;
  for (std::uint64_t at = first; at < end;) {
    const unsigned bit = at & 63;
    const std::uint64_t count = end - at < 64 - bit ? end - at : 64 - bit;
    const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    const std::uint64_t bad = change(word(at), ones << bit);
    if (bad != 0 && wrong == 0) wrong = (at & ~std::uint64_t{63}) + static_cast<unsigned>(std::countr_zero(bad));
    at += count;
  }
  return reinterpret_cast<const void*>(wrong << quantum_shift);
}

const void* LiveRanges::claim(const void* p, std::size_t bytes) {
  return for_each_word(p, bytes,
                       [](Word& w, std::uint64_t mask) { return w.fetch_or(mask, std::memory_order_relaxed) & mask; });
}

const void* LiveRanges::release(const void* p, std::size_t bytes) {
  return for_each_word(p, bytes,
                       [](Word& w, std::uint64_t mask) { return ~w.fetch_and(~mask, std::memory_order_relaxed) & mask; });
}

}  // namespace stress
