// SPDX-License-Identifier: MIT OR Apache-2.0
// TERRACE_CHECK: 1[,sample:N][,quarantine:BYTES]. docs/guide/misuse.md has it for users.
#pragma once

#include "base/types.h"

#include <string_view>

namespace terrace::check {

struct Options {
  bool on = false;
  std::uint64_t sample = 1000;          // one allocation in so many lies beside guard pages; 0: none
  std::uint64_t quarantine = 16 * mib;  // freed blocks that are not handed out again yet, in bytes
};

/// False: none of the grammar; `out` is undefined.
bool parse_options(std::string_view text, Options& out) noexcept;
/// As the environment has them; a bad value is refused with a line on standard error.
Options read_options() noexcept;

}  // namespace terrace::check
