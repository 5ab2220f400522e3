// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory that is given back costs a fault per page when it is needed again, and memory that is kept costs everybody else.
// Nobody knows the future, but there is the past: what was given back and needed again soon after should have been kept. So
// much more may be kept from then on, and a quarter less of it at each tick.
#pragma once

#include "base/bits.h"
#include "base/counter.h"

namespace terrace::span {

class Refaults {
 public:
  constexpr explicit Refaults(std::uint64_t ceiling) noexcept : ceiling_(ceiling) {}

  /// Bytes that should have been kept.
  std::uint64_t allowance() const noexcept { return allowance_.read(); }
  void on_purge(std::uint64_t bytes) noexcept { purged_.add(bytes); }
  /// Memory without pages was needed. Only what was purged before counts: growth does not.
  void on_refault(std::uint64_t bytes) noexcept {
    const std::uint64_t refaulted = min_of(bytes, purged_.read());
    if (refaulted == 0) return;
    // Two threads may both subtract: then a little more counts, or the rest does until it fades.
    purged_.set(purged_.read() - refaulted);
    allowance_.set(min_of(allowance_.read() + refaulted, ceiling_));
  }
  /// At each tick: what was purged before the last one does not count any more.
  void fade() noexcept {
    const std::uint64_t now = purged_.read();
    purged_.set(now - min_of(now, before_));
    before_ = purged_.read();
    allowance_.set(allowance_.read() - allowance_.read() / 4);
  }

 private:
  std::uint64_t ceiling_;
  SharedCounter allowance_, purged_;
  std::uint64_t before_ = 0;
};

}  // namespace terrace::span
