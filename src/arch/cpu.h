// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstdint>

namespace terrace::arch {

/// Whether the processor makes each load of a thread appear after the loads before it.
#if defined(__x86_64__)
inline constexpr bool loads_stay_in_order = true;
#else
inline constexpr bool loads_stay_in_order = false;
#endif

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
