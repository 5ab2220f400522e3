// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstdint>

namespace terrace::os {

/// Whether libc knows that the calling thread is the only one. False where libc does not tell (glibc before 2.32, others).
bool single_threaded() noexcept;
/// An address that tells the calling thread from all others of its process; a forked child's thread has its parent's.
const void* this_thread() noexcept;

/// The calling thread's number, as the kernel has it; asked once.
std::uint32_t thread_number() noexcept;
/// In a forked child, whose thread has another.
void forget_thread_number() noexcept;

}  // namespace terrace::os
