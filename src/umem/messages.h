// SPDX-License-Identifier: MIT OR Apache-2.0
// Messages of the library: into a ring that a debugger finds in any core, and with `verbose` to standard error. No stdio.
#pragma once

#include "base/format.h"

extern "C" {
/// The last 8 KiB of text. Its oldest byte is at `begin`, or at 0 until the ring has been filled once.
extern char umem_error_buffer[8192];
extern unsigned umem_error_begin;
}

namespace terrace::umem {

/// One line or more, written when it goes out of scope.
class Message : public Writer {
 public:
  Message() noexcept : Writer(buf_, sizeof buf_) {}
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

 private:
  char buf_[512];
};

/// The frames of the calling thread, a line each.
void say_stack() noexcept;
/// The same for frames captured earlier.
void say_stack(const void* const* frames, unsigned depth) noexcept;

/// In a forked child.
void messages_after_fork_in_child() noexcept;

/// After a reported corruption of the heap: ends the process by SIGABRT, unless `noabort`.
void heap_is_corrupt() noexcept;
/// As heap_is_corrupt(), with a line of its own, always: "umem: <text>".
[[noreturn]] void panic(const char* text) noexcept;

}  // namespace terrace::umem
