// SPDX-License-Identifier: MIT OR Apache-2.0
// Assertions: faults of ours, looked for where they are cheap to see. Builds for developers and sanitizers have them (CMake:
// TERRACE_ASSERTIONS); in others the condition is compiled, so that it stays valid, and leaves no instruction. libc's assert()
// would allocate the line that it writes.
#pragma once

#include "base/report.h"

namespace terrace {

#if defined(TERRACE_ASSERTIONS)
inline constexpr bool assertions = true;
#else
inline constexpr bool assertions = false;
#endif

}  // namespace terrace

/// "terrace: internal error: <what>" and the end unless the condition holds. `what` begins with the invariant's name, if it has
/// one.
#define TERRACE_ASSERT(condition, what)    \
  do {                                     \
    if constexpr (::terrace::assertions) { \
      if (!(condition)) [[unlikely]]       \
        ::terrace::report_internal(what);  \
    }                                      \
  } while (false)
