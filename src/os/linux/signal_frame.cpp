// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/stack.h"

#include <csignal>
#include <cstring>

namespace terrace::os {
namespace {

constexpr unsigned frames_looked_at = 512;

// A handler returns to code that asks the kernel to go back to what was interrupted: on x86-64 libc's, on arm64 the vDSO's.
// Debuggers know it by its instructions, too.
#if defined(__x86_64__)
constexpr unsigned char trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};  // mov $rt_sigreturn, %rax; syscall
#else
constexpr unsigned char trampoline[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};  // mov x8, #rt_sigreturn; svc #0
#endif

bool is_trampoline(const void* code) noexcept { return std::memcmp(code, trampoline, sizeof trampoline) == 0; }

bool is_on_alternate_stack() noexcept {
  stack_t now;
  return sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
}

}  // namespace

bool in_signal_handler() noexcept {
  if (is_on_alternate_stack()) return true;
  const void* frames[frames_looked_at];
  const unsigned n = capture_stack(frames, frames_looked_at);
  for (unsigned i = 0; i < n; ++i) {
    if (is_trampoline(frames[i])) return true;
  }
  return false;
}

}  // namespace terrace::os
