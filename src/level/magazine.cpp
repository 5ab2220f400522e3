// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/magazine.h"

namespace terrace::level {

// The origin is place 8: the words 0 and `stopped` name places from 7 to 40.
constinit const std::uint64_t zeros_around_origin[64] = {};

}  // namespace terrace::level
