// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include "allocator.h"

#include <cstdio>
#include <string_view>

namespace api {

inline constexpr int skip_status = 77;  // ctest's SKIP_RETURN_CODE in all directories of tests/

// With a preloaded libterrace.so a test must really run on it, and on the rung that TERRACE_RUNG asks for; a rung that this
// kernel does not have skips the test. 0: as asked, else the status to exit with.
inline int status_unless_as_asked() {
  const char* const preload = std::getenv("LD_PRELOAD");
  if (preload != nullptr && std::string_view(preload).find("libterrace") != std::string_view::npos && !is_terrace()) {
    std::fprintf(stderr, "preloaded %s, but its functions are not there\n", preload);
    return 1;
  }
  const char* const rung = std::getenv("TERRACE_RUNG");
  if (rung != nullptr && is_terrace() && std::string_view(rung) != api::rung()) {
    std::fprintf(stderr, "rung %s is not to be had here (%s instead)\n", rung, api::rung());
    return skip_status;
  }
  return 0;
}

}  // namespace api
