// SPDX-License-Identifier: MIT OR Apache-2.0
// The system call rseq, for programs that take the registration of their threads into their own hands.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" {
extern const std::ptrdiff_t __rseq_offset __attribute__((weak));  // NOLINT(readability-identifier-naming)
extern const unsigned int __rseq_size __attribute__((weak));      // NOLINT(readability-identifier-naming)
}

namespace env_test {

#if defined(__x86_64__)
inline constexpr std::uint32_t rseq_signature = 0x53053053;
#else
inline constexpr std::uint32_t rseq_signature = 0xd428bc00;
#endif

inline long rseq(void* area, unsigned long bytes, int flags) { return syscall(SYS_rseq, area, bytes, flags, rseq_signature); }

/// 0, or errno.
inline int register_rseq(void* area) { return rseq(area, 32, 0) == 0 ? 0 : errno; }

/// Takes libc's area of the calling thread from the kernel. False: there is none, or the length is not to be found.
inline bool unregister_libcs_rseq() {
  if (&__rseq_size == nullptr || __rseq_size == 0) return false;
  std::uintptr_t self;
#if defined(__x86_64__)
  asm("mov %%fs:0, %0" : "=r"(self));
#else
  self = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#endif
  auto* const area = reinterpret_cast<void*>(self + static_cast<std::uintptr_t>(__rseq_offset));
  for (unsigned long bytes = 32; bytes <= 256; ++bytes) {  // glibc 2.41 and later register what the kernel has
    if (rseq(area, bytes, 1) == 0) return true;
  }
  return false;
}

}  // namespace env_test
