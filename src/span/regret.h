// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory that is given back costs a fault per page when it is needed again, and memory that is kept costs everybody else.
// Nobody knows the future, but there is the past: what was given back and needed again soon after should have been kept. So
// much more may be kept from then on, and a quarter less of it at each tick.
#pragma once

#include "base/bits.h"
#include "base/counter.h"

namespace terrace::span {

class Regret {
 public:
  constexpr explicit Regret(std::uint64_t ceiling) noexcept : ceiling_(ceiling) {}

  /// Bytes that should have been kept.
  std::uint64_t allowance() const noexcept { return allowance_.read(); }
  void given_back(std::uint64_t bytes) noexcept { regrettable_.add(bytes); }
  /// Memory without pages was needed. What grows beyond what was given back is no regret.
  void needed(std::uint64_t bytes) noexcept {
    const std::uint64_t regretted = min_of(bytes, regrettable_.read());
    if (regretted == 0) return;
    // Two threads may both subtract: then a little more is regretted, or the rest is until it fades.
    regrettable_.set(regrettable_.read() - regretted);
    allowance_.set(min_of(allowance_.read() + regretted, ceiling_));
  }
  /// At each tick: what was given back before the last one is no regret any more.
  void fade() noexcept {
    const std::uint64_t now = regrettable_.read();
    regrettable_.set(now - min_of(now, before_));
    before_ = regrettable_.read();
    allowance_.set(allowance_.read() - allowance_.read() / 4);
  }

 private:
  std::uint64_t ceiling_;
  SharedCounter allowance_, regrettable_;
  std::uint64_t before_ = 0;
};

}  // namespace terrace::span
