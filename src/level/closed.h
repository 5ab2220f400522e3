// SPDX-License-Identifier: MIT OR Apache-2.0
// Whether the calling thread may use slots. A vfork child or a companion (os/thread_state.h) may not, since it shares another
// thread's rseq area without being registered; nor may a thread on the thread rung that frees blocks after it gave back its
// slot.
#pragma once

#include "os/thread_state.h"

namespace terrace::level {

class Closed {
 public:
  static bool to_this_thread() noexcept { return times() != 0; }
  /// Number of reasons: vfork, whose children nest, and the thread's exit.
  static unsigned times() noexcept { return os::thread_state().closed; }
  static void set_times(unsigned times) noexcept { os::thread_state().closed = times; }
};

}  // namespace terrace::level
