// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstdint>

namespace terrace::os {

/// Milliseconds of a clock that never goes back; coarse (1 to 4 ms), a few ns to read.
std::uint64_t coarse_milliseconds() noexcept;

/// The same clock, exactly; a hundred ns.
std::uint64_t monotonic_nanoseconds() noexcept;

}  // namespace terrace::os
