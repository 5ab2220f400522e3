// SPDX-License-Identifier: MIT OR Apache-2.0
// Whether the calling thread may use slots at all. Not a vfork child, which shares its parent's rseq area without being
// registered, nor a thread on the thread rung after its slot was given back, for what it frees then.
#pragma once

namespace terrace::level {

class Closed {
 public:
  static bool to_this_thread() noexcept { return times_ != 0; }
  /// How often it was closed: by vfork, whose children nest, and by its exit.
  static unsigned times() noexcept { return times_; }
  static void set_times(unsigned times) noexcept { times_ = times; }

 private:
  static constinit thread_local unsigned times_;
};

}  // namespace terrace::level
