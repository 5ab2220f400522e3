// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/threads.h"

extern "C" {
extern char __libc_single_threaded __attribute__((weak));  // NOLINT(readability-identifier-naming)
}

namespace terrace::os {
namespace {

constinit thread_local char of_this_thread = 0;

}  // namespace

bool single_threaded() noexcept { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

const void* this_thread() noexcept { return &of_this_thread; }

}  // namespace terrace::os
