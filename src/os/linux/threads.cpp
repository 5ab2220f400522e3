// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/threads.h"

#include "os/io.h"
#include "os/thread_state.h"

extern "C" {
extern char __libc_single_threaded __attribute__((weak));  // NOLINT(readability-identifier-naming)
}

namespace terrace::os {
namespace {

constinit thread_local std::uint32_t number = 0;

}  // namespace

std::uint32_t thread_number() noexcept {
  if (number == 0) number = static_cast<std::uint32_t>(thread_id());
  return number;
}
void forget_thread_number() noexcept { number = 0; }

bool single_threaded() noexcept {
  // libc does not count companions. relaxed: see thread_state().
  return &__libc_single_threaded != nullptr && __libc_single_threaded != 0 && companions.load(std::memory_order_relaxed) == 0;
}

const void* this_thread() noexcept {
  const ThreadState& me = thread_state();
  return me.identity != nullptr ? me.identity : &me;
}

}  // namespace terrace::os
