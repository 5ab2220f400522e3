// SPDX-License-Identifier: MIT OR Apache-2.0
// Names of files that options ask for.
#pragma once

#include "base/format.h"
#include "base/text.h"
#include "os/io.h"

#include <span>

namespace terrace::introspect {

inline constexpr std::size_t path_size = 4096;

/// "%p" becomes the process id. What does not fit is cut; a zero ends it.
inline void expand(std::string_view pattern, std::span<char, path_size> path) noexcept {
  Writer out(path.data(), path.size());
  while (!pattern.empty()) {
    if (skip_prefix(pattern, "%p")) {
      out.decimal(static_cast<std::uint64_t>(os::process_id()));
    } else {
      out.put(pattern.front());
      pattern.remove_prefix(1);
    }
  }
  out.terminate();
}

}  // namespace terrace::introspect
