// SPDX-License-Identifier: MIT OR Apache-2.0
// How large the next buffer is. Pure functions of what is known at a refill or a collection.
#pragma once

#include "base/bits.h"
#include "terrace/lab.h"

namespace terrace::lab {

/// The limits within which a policy moves.
struct Bounds {
  std::size_t least, most, alignment;
  constexpr std::size_t clamp(std::size_t bytes) const noexcept {
    return max_of(least, min_of(most, round_down(bytes, alignment)));
  }
};

/// Of the bytes that were allocated between two collections, the part that came through one buffer; an exponential average, in
/// units of 1/65536. HotSpot weighs the newest sample with 35 %.
class Share {
 public:
  constexpr void sample(std::uint64_t bytes, std::uint64_t of) noexcept {
    if (of == 0) return;
    const std::uint64_t now = min_of<std::uint64_t>((bytes << 16) / of, one);
    value_ = known_ ? (value_ * (100 - weight) + now * weight) / 100 : now;
    known_ = true;
  }
  constexpr bool known() const noexcept { return known_; }
  constexpr std::uint64_t of(std::uint64_t bytes) const noexcept {
    return (bytes >> 16) * value_ + ((bytes & 0xffff) * value_ >> 16);
  }

 private:
  static constexpr std::uint64_t one = std::uint64_t{1} << 16;
  static constexpr std::uint64_t weight = 35;
  std::uint64_t value_ = 0;
  bool known_ = false;
};

/// How often a buffer of the level should be refilled between two collections. HotSpot's number for TLABs; fewer and larger
/// ones further up, since a refill there is waited for by more threads.
inline constexpr unsigned target_refills[TERRACE_LAB_LEVELS] = {50, 16, 8, 4};

/// TERRACE_LAB_GROWING, at a collection. Before anything is known, every one of `buffers` gets the same share.
constexpr std::size_t grown(const Share& share, std::size_t young, unsigned buffers, int level, const Bounds& bounds) noexcept {
  const std::uint64_t through = share.known() ? share.of(young) : young / max_of(buffers, 1U);
  return bounds.clamp(through / target_refills[level]);
}

/// TERRACE_LAB_DOUBLING: no buffer may become larger than this part of what each would have if the space were divided evenly.
inline constexpr unsigned doubling_share = 4;
constexpr std::size_t doubled(std::size_t size, std::size_t young, unsigned buffers, const Bounds& bounds) noexcept {
  const std::size_t fair = young / max_of(buffers, 1U) / doubling_share;
  return bounds.clamp(min_of(2 * size, fair));
}
constexpr std::size_t decayed(std::size_t size, const Bounds& bounds) noexcept { return bounds.clamp(size / 2); }

/// [MP-RCS] 5.2: whether objects should come from the other kind of buffer after a collection that found `unused` bytes in
/// buffers of the present kind, of at most `largest` bytes each.
constexpr bool should_flip(bool by_core, std::uint64_t unused, std::size_t largest, unsigned cores, unsigned threads) noexcept {
  return unused > std::uint64_t{largest} * (by_core ? threads : cores);
}

/// TERRACE_LAB_AUTO: by core for some collections after one that found much of the space unused in TLABs. What these would
/// waste shows only while there are any. So they are tried between two collections: after 1, 2, 4 ... 64 by core.
class Trials {
 public:
  static constexpr unsigned much = 20;     // the nth part of the space: as much as the longer path by core costs in a program
  static constexpr unsigned longest = 64;  // collections by core in turn: a trial every now and then may waste as before

  /// At a collection: whether objects come by core from now on.
  constexpr bool by_core_next(bool by_core, std::uint64_t unused, std::uint64_t young) noexcept {
    if (by_core) return --left_ != 0;
    const bool is_much = unused > young / much;
    left_ = spell_;
    spell_ = is_much ? min_of(2 * spell_, longest) : 1;
    return is_much;
  }

 private:
  unsigned left_ = 0;   // collections by core until TLABs are tried
  unsigned spell_ = 1;  // as many there will be next time
};

}  // namespace terrace::lab
