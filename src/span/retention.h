// SPDX-License-Identifier: MIT OR Apache-2.0
// How much free memory may stay resident. Memory that is given back costs a fault per page when it is needed again, and memory
// that is kept costs everybody else. Nobody knows the future, but there is the past: what was given back and needed again soon
// after should have been kept ("regret"). So the allowance grows by what is regretted, and fades while nothing is.
//
// A program that frees once and sleeps keeps the floor, and of much memory a share that is given back when it goes on; one that
// frees and takes the same megabytes in a loop gives them back once.
#pragma once

#include "base/bits.h"
#include "base/counter.h"

namespace terrace::span {

/// Memory of pieces that share pages is needed again so often before it is kept: a thousand threads that take, free and sleep
/// do it once.
inline constexpr std::uint64_t fine_regret = 8;
/// Beyond the ceilings below, so many times as often again: a program that takes and frees the same megabytes in a loop does
/// it.
inline constexpr std::uint64_t repeated_regret = 64;
/// What such pieces may raise an allowance to before that: the bound on all free memory (heap/surplus.cpp) has room for it.
inline constexpr std::uint64_t ceiling_of_shares = std::uint64_t{6} << 20;
/// What pieces with pages of their own may raise the bound on all free memory by before that; spans of one piece may raise it
/// further at once.
inline constexpr std::uint64_t ceiling_of_pieces = std::uint64_t{7} << 20;

class Retention {
 public:
  struct Rule {
    std::uint64_t floor;    // bytes, always
    std::uint64_t small;    // up to so many bytes in use, now or lately; beyond,
    std::uint64_t share;    // 1/share of what is more
    std::uint64_t ceiling;  // bytes, of the allowance
  };
  constexpr explicit Retention(Rule rule) noexcept : rule_(rule) {}

  /// What may be kept, now that so much is in use; that is remembered. Of two threads that raise it one may be lost.
  std::uint64_t bound(std::uint64_t in_use) noexcept {
    if (in_use > lately_.read()) lately_.set(in_use);
    const std::uint64_t beyond = lately_.read() - min_of(lately_.read(), rule_.small);
    return max_of(rule_.floor + beyond / rule_.share, allowance_.read());
  }
  std::uint64_t allowance() const noexcept { return allowance_.read(); }
  void given_back(std::uint64_t bytes) noexcept { regrettable_.add(bytes); }
  /// Memory without pages was needed. What grows beyond what was given back is no regret. The allowance rises by 1/share of it:
  /// a larger share is for pieces that share pages, of which the same must be regretted so often before it is kept.
  void needed(std::uint64_t bytes, std::uint64_t share = 1) noexcept {
    needed(bytes, share, share == 1 ? rule_.ceiling : min_of(rule_.ceiling, ceiling_of_shares));
  }
  /// The same; beyond `ceiling` by a part of that only.
  void needed(std::uint64_t bytes, std::uint64_t share, std::uint64_t ceiling) noexcept {
    const std::uint64_t regretted = min_of(bytes, regrettable_.read());
    if (regretted == 0) return;
    // Two threads may both subtract: then a little more is regretted, or the rest is until it fades.
    regrettable_.set(regrettable_.read() - regretted);
    const std::uint64_t now = allowance_.read(), rise = regretted / share;
    const std::uint64_t in_full = min_of(rise, ceiling - min_of(ceiling, now));
    const std::uint64_t most = max_of(rule_.ceiling, now);
    allowance_.set(min_of(now + in_full + (rise - in_full) / repeated_regret, most));
  }
  /// At each tick: what was given back before the last one is no regret any more.
  void fade() noexcept {
    const std::uint64_t now = regrettable_.read();
    regrettable_.set(now - min_of(now, before_));
    before_ = regrettable_.read();
    allowance_.set(allowance_.read() - allowance_.read() / 4);
    lately_.set(lately_.read() - lately_.read() / 4);
  }

 private:
  Rule rule_;
  SharedCounter allowance_, regrettable_;
  SharedCounter lately_;  // bytes in use
  std::uint64_t before_ = 0;
};

}  // namespace terrace::span
