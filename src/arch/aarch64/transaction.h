// SPDX-License-Identifier: MIT OR Apache-2.0
// [sequence 6], as in x86_64/transaction.h; the block is in transaction.S.
#pragma once

#include "arch/cpu.h"

extern "C" {
extern const std::uint64_t terrace_transaction[4] __attribute__((visibility("hidden")));

int terrace_commit_store32(std::ptrdiff_t critical_section, void* address, std::uint32_t value) noexcept
    __attribute__((visibility("hidden")));
int terrace_commit_store64(std::ptrdiff_t critical_section, void* address, std::uint64_t value) noexcept
    __attribute__((visibility("hidden")));
int terrace_commit_cas32(std::ptrdiff_t critical_section, void* address, std::uint32_t expected, std::uint32_t value) noexcept
    __attribute__((visibility("hidden")));
int terrace_commit_cas64(std::ptrdiff_t critical_section, void* address, std::uint64_t expected, std::uint64_t value) noexcept
    __attribute__((visibility("hidden")));
}

namespace terrace::arch {

template <class T>
inline T* in_area(std::ptrdiff_t offset) noexcept {
  return reinterpret_cast<T*>(thread_pointer() + static_cast<std::uintptr_t>(offset));
}

/// The word that says which descriptor is in force for the calling thread.
inline std::uint64_t load_critical_section(std::ptrdiff_t offset) noexcept {
  std::uint64_t v;
  __asm__ volatile("ldr %0, [%1]" : "=r"(v) : "r"(in_area<std::uint64_t>(offset)) : "memory");
  return v;
}
inline void store_critical_section(std::ptrdiff_t offset, std::uint64_t v) noexcept {
  __asm__ volatile("str %1, [%0]" : : "r"(in_area<std::uint64_t>(offset)), "r"(v) : "memory");
}
inline std::int32_t load_slot(std::ptrdiff_t offset) noexcept {
  std::int32_t v;
  __asm__ volatile("ldr %w0, [%1]" : "=r"(v) : "r"(in_area<std::int32_t>(offset)) : "memory");
  return v;
}

/// Whether the kernel keeps the calling thread's area up to date. Two instructions, with the branch.
__attribute__((always_inline)) inline bool registered(const Area& area) noexcept {
  std::int32_t cpu;
  __asm__ volatile("ldur %w0, [%1, #-%c2]"
                   : "=r"(cpu)
                   : "r"(in_area<std::byte>(area.critical_section)), "i"(cpu_id_below_critical_section));
  return cpu >= 0;
}

}  // namespace terrace::arch
