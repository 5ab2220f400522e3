// SPDX-License-Identifier: MIT OR Apache-2.0
// The kernel's clock_gettime, of the object that it maps into each process (vdso(7)), which needs no system call. Not libc's
// function of that name: a program or what is preloaded may have another in its place (libfaketime), which may allocate.
#include "os/clock.h"

#include "arch/syscall.h"
#include "os/auxv.h"

#include <atomic>
#include <cstring>
#include <ctime>
#include <elf.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

namespace terrace::os {
namespace {

using Clock = int (*)(clockid_t clock, timespec* now);

#if defined(__aarch64__)
constexpr char clock_symbol[] = "__kernel_clock_gettime";
#else
constexpr char clock_symbol[] = "__vdso_clock_gettime";
#endif

int clock_by_system_call(clockid_t clock, timespec* now) noexcept {
  return static_cast<int>(arch::raw_syscall(SYS_clock_gettime, clock, reinterpret_cast<long>(now)));
}

// Its names lie right behind its symbols: so the linker orders them. Null: the process has no such object.
Clock find_clock() noexcept {
  const auto* const object = reinterpret_cast<const std::byte*>(auxiliary_value(AT_SYSINFO_EHDR));  // NOLINT: an address
  if (object == nullptr) return nullptr;
  const auto& head = *reinterpret_cast<const Elf64_Ehdr*>(object);
  const auto* const segments = reinterpret_cast<const Elf64_Phdr*>(object + head.e_phoff);
  const std::byte* zero = object;  // what its addresses count from
  const Elf64_Dyn* entry = nullptr;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD) zero = object + segments[i].p_offset - segments[i].p_vaddr;
    if (segments[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const Elf64_Dyn*>(object + segments[i].p_offset);
  }
  const Elf64_Sym* symbol = nullptr;
  const char* names = nullptr;
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbol = reinterpret_cast<const Elf64_Sym*>(zero + entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(zero + entry->d_un.d_ptr);
  }
  for (; symbol != nullptr && reinterpret_cast<const char*>(symbol + 1) <= names; ++symbol)
    if (symbol->st_shndx != SHN_UNDEF && std::strcmp(names + symbol->st_name, clock_symbol) == 0)
      return reinterpret_cast<Clock>(const_cast<std::byte*>(zero + symbol->st_value));
  return nullptr;
}

timespec time_of(clockid_t clock) noexcept {
  static constinit std::atomic<Clock> known{nullptr};  // relaxed: it is the same for all who ask
  Clock function = known.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = find_clock();
    if (function == nullptr) function = clock_by_system_call;
    known.store(function, std::memory_order_relaxed);
  }
  timespec now = {};
  function(clock, &now);
  return now;
}

}  // namespace

std::uint64_t coarse_milliseconds() noexcept {
  const timespec now = time_of(CLOCK_MONOTONIC_COARSE);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

std::uint64_t monotonic_nanoseconds() noexcept {
  const timespec now = time_of(CLOCK_MONOTONIC);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace terrace::os
