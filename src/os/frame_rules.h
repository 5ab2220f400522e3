// SPDX-License-Identifier: MIT OR Apache-2.0
// From a function's frame to its caller's, by the tables of exception handlers (.eh_frame): x86-64.
#pragma once

#include <cstdint>

namespace terrace::os {

/// How the caller's registers follow from those of a frame. The canonical frame address (CFA) is what the caller's stack
/// pointer is after the return; the return address lies 8 bytes below it.
struct FrameRule {
  enum class Cfa : std::uint8_t {
    unknown,    // a rule that is not of these
    from_sp,    // stack pointer + cfa_offset
    from_fp,    // frame pointer (rbp) + cfa_offset
    at_fp,      // what lies at frame pointer + cfa_offset
    of_signal,  // a handler returns here: the kernel has put the interrupted registers on the stack
    none,       // the outermost frame, or code without tables
  } cfa = Cfa::unknown;
  enum class Fp : std::uint8_t { kept, at_cfa, at_fp } fp = Fp::kept;  // where the caller's frame pointer is; + fp_offset
  std::int32_t cfa_offset = 0;
  std::int16_t fp_offset = 0;
};

/// Of the code at `pc`. Takes no lock, and reads tables only.
FrameRule find_frame_rule(std::uintptr_t pc) noexcept;
/// Whether the C library lets it.
bool has_frame_rules() noexcept;

/// Return addresses of the calling thread, innermost first, the caller's own function among them; how many. -1: some frame has
/// no known rule. Remembers rules by return address.
int unwind_by_rules(void** frames, int size) noexcept;

}  // namespace terrace::os
