// SPDX-License-Identifier: MIT OR Apache-2.0
// Restricted transactional memory of x86-64. The instructions are emitted as bytes, so that any compiler builds this for any
// processor of the family; whether they may be executed is found out at run time.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rtm {

inline constexpr unsigned started = 0xFFFF'FFFF;  // no abort status has all bits set
inline constexpr unsigned status_retry = 1U << 1;
inline constexpr unsigned status_conflict = 1U << 2;
inline constexpr unsigned status_capacity = 1U << 3;

#if defined(__x86_64__)
// CPUID 7: the instructions are there, and a microcode update has not made every transaction abort.
inline bool usable() {
  constexpr unsigned has_rtm = 1U << 11;        // EBX
  constexpr unsigned always_aborts = 1U << 11;  // EDX
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & has_rtm) != 0 && (d & always_aborts) == 0;
}

// `started`, or after an abort the status: execution resumes here once more, with everything since undone.
inline unsigned begin() {
  unsigned status = started;
  __asm__ volatile(".byte 0xc7, 0xf8, 0, 0, 0, 0" : "+a"(status) : : "memory");  // xbegin to the next instruction
  return status;
}

inline void end() { __asm__ volatile(".byte 0x0f, 0x01, 0xd5" : : : "memory"); }  // xend
#else
inline bool usable() { return false; }
inline unsigned begin() { return 0; }
inline void end() {}
#endif

}  // namespace rtm
