// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/closed.h"

namespace terrace::level {

constinit thread_local unsigned Closed::times_ = 0;

}  // namespace terrace::level
