// SPDX-License-Identifier: MIT OR Apache-2.0
// Options from the environment: docs/guide/options.md.
#pragma once

#include "heap/classes/placement.h"

#include <cstdint>
#include <string_view>

namespace terrace::heap {

struct Options {
  Placement placement = Placement::punctuated;
  std::uint32_t random_line_per_65536 = 0;  // placement random: probability of the extra line
  std::uint64_t budget = 0;                 // 0: by the default rule
  std::uint64_t decay_ms = 1000;
  std::uint64_t profile = 0;      // mean bytes between samples; 0: none
  bool profile_stacks = false;    // with a copy of the stack
  unsigned profile_dump_at = 90;  // percent of a memory limit
  std::string_view profile_dump;  // the file that samples are written to then; empty: none
};

/// Bad values are refused with a line on standard error. `lookup` tells the value of a variable, null when there is none.
using Lookup = const char* (*)(const char* name) noexcept;
Options read_options(Lookup lookup) noexcept;

}  // namespace terrace::heap
