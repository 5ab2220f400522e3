// SPDX-License-Identifier: MIT OR Apache-2.0
// The calling thread's rseq area, which the kernel keeps up to date. glibc (from 2.35) registers one for every thread. Ours is
// registered where libc knows nothing of rseq, or where the user has asked for it: a thread has one area, and if libc was told
// to leave rseq alone, it is the program's. No field but rseq_cs is ever written.
#pragma once

#include <cstddef>

namespace terrace::os {

enum class RseqOwner : unsigned char {
  none,        // the kernel or a sandbox refuses
  left_alone,  // libc knows rseq and has registered nobody: glibc.pthread.rseq=0, or it was refused
  libc,
  ours
};
constexpr bool is_registered(RseqOwner owner) noexcept { return owner == RseqOwner::libc || owner == RseqOwner::ours; }

struct RseqArea {
  RseqOwner owner = RseqOwner::none;
  std::ptrdiff_t offset = 0;       // from the thread pointer, the same for every thread
  unsigned long feature_size = 0;  // bytes that the kernel fills: AT_RSEQ_FEATURE_SIZE, or 20 before it existed
};

inline constexpr std::ptrdiff_t rseq_cpu_id = 4;
inline constexpr std::ptrdiff_t rseq_critical_section = 8;
inline constexpr std::ptrdiff_t rseq_mm_cid = 24;
inline constexpr unsigned long rseq_size_with_mm_cid = 28;
inline constexpr unsigned long rseq_original_length = 32;  // of a registration; glibc before 2.41 knows no other

/// Finds libc's area, or registers ours for the calling thread if libc knows nothing of rseq. `insist`: also if it has left it
/// to others.
RseqArea find_rseq_area(bool insist) noexcept;
/// With RseqOwner::ours each thread registers at its first use. True: registered now or before.
bool register_rseq_for_this_thread() noexcept;
/// The area at that offset from the thread pointer. True: registered now or before.
bool register_rseq(std::ptrdiff_t offset) noexcept;
/// The kernel itself writes -1 into cpu_id then. False: it refuses, or has not registered this area for the calling thread.
bool unregister_rseq(std::ptrdiff_t offset) noexcept;
/// The cpu the thread ran on a moment ago; -1 when it can not be had.
int current_cpu() noexcept;
/// Kernel version as major * 1,000,000 + minor * 1,000 + patch; 0 if unknown.
unsigned kernel_version() noexcept;

}  // namespace terrace::os
