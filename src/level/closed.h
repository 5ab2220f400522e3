// SPDX-License-Identifier: MIT OR Apache-2.0
// Whether the calling thread may use slots at all. Not a vfork child or a companion (os/thread_state.h), which share the rseq
// area of another thread without being registered, nor a thread on the thread rung after its slot was given back, for what it
// frees then.
#pragma once

#include "os/thread_state.h"

namespace terrace::level {

class Closed {
 public:
  static bool to_this_thread() noexcept { return times() != 0; }
  /// How often it was closed: by vfork, whose children nest, and by its exit.
  static unsigned times() noexcept { return os::thread_state().closed; }
  static void set_times(unsigned times) noexcept { os::thread_state().closed = times; }
};

}  // namespace terrace::level
