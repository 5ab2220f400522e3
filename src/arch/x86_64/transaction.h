// SPDX-License-Identifier: MIT OR Apache-2.0
// [sequence 6] The committing instructions of the public critical sections. All of them lie in ONE block, because the open
// transaction is named by one descriptor: transaction.S has the block, its descriptor `terrace_transaction` and its abort
// label.
#pragma once

extern "C" {
/// The descriptor whose address in rseq_cs says "a transaction is open and nothing has interfered".
extern const std::uint64_t terrace_transaction[4] __attribute__((visibility("hidden")));

/// 0: stored. 1: the transaction is over, nothing was stored. 2 (cas only): *address was not `expected`.
/// `critical_section` is Area::critical_section.
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

/// The word that says which descriptor is in force for the calling thread.
inline std::uint64_t load_critical_section(std::ptrdiff_t offset) noexcept {
  std::uint64_t v;
  __asm__ volatile("movq %%fs:(%1), %0" : "=r"(v) : "r"(offset) : "memory");
  return v;
}
inline void store_critical_section(std::ptrdiff_t offset, std::uint64_t v) noexcept {
  __asm__ volatile("movq %1, %%fs:(%0)" : : "r"(offset), "r"(v) : "memory");
}
inline std::int32_t load_slot(std::ptrdiff_t offset) noexcept {
  std::int32_t v;
  __asm__ volatile("movl %%fs:(%1), %0" : "=r"(v) : "r"(offset) : "memory");
  return v;
}

/// Whether the kernel keeps the calling thread's area up to date. Two instructions, with the branch.
__attribute__((always_inline)) inline bool registered(const Area& area) noexcept {
  bool yes;
  __asm__ volatile("cmpl $0, %%fs:-%c2(%1)" : "=@ccge"(yes) : "r"(area.critical_section), "i"(cpu_id_below_critical_section));
  return yes;
}

}  // namespace terrace::arch
