// SPDX-License-Identifier: MIT OR Apache-2.0
// A look at SIGSEGV before the program sees it.
#pragma once

namespace terrace::os {

struct Fault {
  const void* address;
  const void* code;    // the instruction
  const char* access;  // "read", "write", or "access" where the processor does not tell
};

/// Has `look` called for each SIGSEGV, before the action that the program has chosen for it, whether or not look() knows the
/// address. Call it again now and then: a program that sets a handler of its own puts it in place of ours, and each call puts
/// ours in front again. The caller sees to it that calls do not overlap.
void watch_faults(void (*look)(const Fault& fault) noexcept) noexcept;

}  // namespace terrace::os
