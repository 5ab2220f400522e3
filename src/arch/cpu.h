// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstdint>

namespace terrace::arch {

/// Tells the core that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// The thread pointer: thread-local data of the executable's initial set lies at constant offsets from it.
inline std::uintptr_t thread_pointer() noexcept {
#if defined(__x86_64__)
  std::uintptr_t tp;
  __asm__("mov %%fs:0, %0" : "=r"(tp));
  return tp;
#else
  return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
#endif
}

}  // namespace terrace::arch
