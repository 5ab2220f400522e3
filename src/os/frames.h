// SPDX-License-Identifier: MIT OR Apache-2.0
// The calling thread's stack, for samples of the heap: without a lock, an allocation or the loader, on any stack, in a signal
// handler, too. Nothing is known of where the stack ends: before a page is read, the kernel is asked whether it can be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::os {

/// Return addresses by frame pointers, innermost first, from the frame at `frame`; how many. A caller that was compiled without
/// frame pointers ends the walk, or leaves addresses of no code in it.
unsigned follow_frames(const void* frame, std::uint64_t* pcs, unsigned size) noexcept;

/// Registers and the top of the stack, from which somebody else unwinds by the tables of the program.
struct StackCopy {
#if defined(__aarch64__)
  static constexpr std::size_t stack_pointer = 12;  // its number among the registers
#else
  static constexpr std::size_t stack_pointer = 7;
#endif
  std::uint64_t bytes;                                // in data
  std::uint64_t pc;                                   // where the registers were as below
  std::uint64_t frame;                                // as follow_frames() has it
  std::uint64_t registers[16];                        // x86-64: by DWARF's numbers; aarch64: x19 to x30, sp. Others: 0
  std::byte data[8192 - 19 * sizeof(std::uint64_t)];  // from the stack pointer on

  /// Else there may be more frames above it.
  bool is_whole() const noexcept { return bytes < sizeof data; }
};
static_assert(sizeof(StackCopy) == 8192);
/// Of the caller.
void copy_stack(StackCopy& copy, const void* frame) noexcept;

}  // namespace terrace::os
