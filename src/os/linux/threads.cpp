// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/threads.h"

extern "C" {
extern char __libc_single_threaded __attribute__((weak));  // NOLINT(readability-identifier-naming)
}

namespace terrace::os {

bool single_threaded() noexcept { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

}  // namespace terrace::os
