// SPDX-License-Identifier: MIT OR Apache-2.0
// How much stack calls take: on a painted stack, from the caller's stack pointer down.
#pragma once

#include "env_test.h"

#include <algorithm>
#include <sys/mman.h>
#include <ucontext.h>

namespace env_test {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
inline std::uintptr_t caller = 0;  // the lowest stack pointer from which calls are made

#if defined(__x86_64__)
inline std::uintptr_t stack_pointer() {
  std::uintptr_t sp = 0;
  asm volatile("mov %%rsp, %0" : "=r"(sp));
  return sp;
}
#else
inline std::uintptr_t stack_pointer() {
  std::uintptr_t sp = 0;
  asm volatile("mov %0, sp" : "=r"(sp));
  return sp;
}
#endif

/// In each function that calls what is measured.
inline void calls_from_here() { caller = std::min(caller, stack_pointer()); }

struct Operation {
  const char* name;
  void (*run)();
};
constexpr std::size_t stack_size = 256 * kib;
constexpr unsigned char paint = 0xa5;
inline ucontext_t here, there;
inline const Operation* current = nullptr;

__attribute__((noinline)) inline void run_current() {
  caller = stack_pointer();
  current->run();
}

inline std::size_t measured(const Operation& operation, unsigned char* stack) {
  current = &operation;
  std::memset(stack, paint, stack_size);
  getcontext(&there);
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = stack_size;
  there.uc_link = &here;
  makecontext(&there, run_current, 0);
  swapcontext(&here, &there);
  std::size_t unused = 0;
  while (unused < stack_size && stack[unused] == paint) ++unused;
  return caller - reinterpret_cast<std::uintptr_t>(stack + unused);
}

inline void* with_guard_below(std::size_t size) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* const memory =
      static_cast<char*>(mmap(nullptr, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  check(memory != MAP_FAILED && mprotect(memory, page, PROT_NONE) == 0, "no stack");
  return memory + page;
}

/// Says what each operation takes.
template <std::size_t count>
std::size_t worst_of(const Operation (&operations)[count]) {
  auto* const stack = static_cast<unsigned char*>(with_guard_below(stack_size));
  std::size_t worst = 0;
  for (const Operation& operation : operations) {
    const std::size_t bytes = measured(operation, stack);
    char line[80];
    std::snprintf(line, sizeof line, "%s: %zu bytes\n", operation.name, bytes);
    say(STDOUT_FILENO, line);
    worst = std::max(worst, bytes);
  }
  return worst;
}

}  // namespace env_test
