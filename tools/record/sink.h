// SPDX-License-Identifier: MIT OR Apache-2.0
// Where events go: chunks of the trace, mapped shared, one per thread. An event that was written is in the file, whatever
// becomes of the process then: nothing has to be flushed. No locks, so a handler of a signal or a child of fork finds none
// held.
#pragma once

#include "trace.h"

#include <cstdint>

namespace terrace::record {

/// True for the outermost call of the recorder on this thread: an allocator's own calls of malloc are its own business, and a
/// handler of a signal that calls malloc in the middle of a call is not recorded.
class Scope {
 public:
  Scope() noexcept;
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  bool outermost() const { return outermost_; }

 private:
  bool outermost_;
};

/// Whether this process is recorded. The first call finds out, also in a child of fork, whose trace is a file of its own.
bool recording() noexcept;

/// Only while recording.
std::uint64_t next_sequence() noexcept;

/// Within the outermost scope only.
void write(const trace::Event& event) noexcept;

}  // namespace terrace::record
