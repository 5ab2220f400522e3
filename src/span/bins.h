// SPDX-License-Identifier: MIT OR Apache-2.0
// Free spans by length: a list per length up to 32 granules, and 16 lists per doubling beyond. So every span of a bin above the
// one that a length belongs to is long enough, and the first such bin is found by a bit instruction on at most 6 words. Only in
// the length's own bin, beyond 32 granules, do spans differ, by at most 1/16: a few of them are looked at.
//
// Invariant: the bit of a bin is set exactly when its list is not empty.
#pragma once

#include "span/window.h"

#include <bit>

namespace terrace::span {

class Bins {
 public:
  static constexpr unsigned exact = 32;
  static constexpr unsigned steps_per_doubling = 16;
  static constexpr unsigned exact_shift = 5, step_shift = 4;
  static constexpr unsigned doublings = 22;  // up to max_granules, which is the first of the last
  static constexpr unsigned count = exact + doublings * steps_per_doubling;
  static constexpr unsigned none = count;
  /// Spans of the length's own bin that find() looks at.
  static constexpr unsigned few_candidates = 4;
  static constexpr unsigned all_candidates = ~0U;

  static constexpr unsigned bin_of(std::uint32_t granules) noexcept {
    if (granules <= exact) return granules - 1;
    const auto doubling = static_cast<unsigned>(std::bit_width(granules)) - 1;
    const unsigned step = granules >> (doubling - step_shift) & (steps_per_doubling - 1);
    return exact + (doubling - exact_shift) * steps_per_doubling + step;
  }

  GranuleIndex head(unsigned bin) const noexcept { return ~heads_[bin]; }

  /// In front of the bin of record(first).granules.
  void insert(const Window& window, GranuleIndex first) noexcept {
    FreePart& f = window.record(first).free;
    const unsigned bin = bin_of(window.record(first).granules);
    f.previous = no_granule;
    f.next = head(bin);
    if (f.next != no_granule) window.record(f.next).free.previous = first;
    set_head(bin, first);
    occupied_[bin / 64] |= std::uint64_t{1} << bin % 64;
  }

  void remove(const Window& window, GranuleIndex first) noexcept {
    const FreePart& f = window.record(first).free;
    const unsigned bin = bin_of(window.record(first).granules);
    if (f.previous == no_granule) {
      set_head(bin, f.next);
    } else {
      window.record(f.previous).free.next = f.next;
    }
    if (f.next != no_granule) window.record(f.next).free.previous = f.previous;
    if (head(bin) == no_granule) occupied_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
  }

  /// A span of at least `granules`, of those given last; no_granule when there is none (or, with few candidates, when those of
  /// the own bin that were looked at are too short and no longer one is there).
  GranuleIndex find(const Window& window, std::uint32_t granules, unsigned candidates = few_candidates) const noexcept {
    const unsigned own = bin_of(granules);
    for (GranuleIndex i = head(own); i != no_granule && candidates != 0; i = window.record(i).free.next, --candidates) {
      if (window.record(i).granules >= granules) return i;
    }
    const unsigned bin = first_from(own + 1);
    return bin == none ? no_granule : head(bin);
  }

  /// The first bin that is not empty, from this one on.
  unsigned first_from(unsigned bin) const noexcept {
    std::uint64_t mask = ~std::uint64_t{0} << bin % 64;
    for (unsigned word = bin / 64; word < words; ++word, mask = ~std::uint64_t{0}) {
      if ((occupied_[word] & mask) != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(occupied_[word] & mask));
    }
    return none;
  }

 private:
  static constexpr unsigned words = (count + 63) / 64;

  void set_head(unsigned bin, GranuleIndex first) noexcept { heads_[bin] = ~first; }

  GranuleIndex heads_[count] = {};  // complements: 0 is no_granule, and what nobody uses takes no memory
  std::uint64_t occupied_[words] = {};
};

consteval bool bins_are_in_order() {
  for (std::uint32_t n = 1; n < max_granules; n += 1 + n / 100) {
    if (Bins::bin_of(n) > Bins::bin_of(n + 1) || Bins::bin_of(n + 1) > Bins::bin_of(n) + 1) return false;
  }
  return Bins::bin_of(1) == 0 && Bins::bin_of(Bins::exact) + 1 == Bins::bin_of(Bins::exact + 1) &&
         Bins::bin_of(max_granules) < Bins::count;
}
static_assert(bins_are_in_order());

}  // namespace terrace::span
