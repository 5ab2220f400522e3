// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/fault.h"

#include <csignal>
#include <ucontext.h>

namespace terrace::os {
namespace {

void (*on_fault)(const Fault& fault) noexcept = nullptr;
struct sigaction previous {};                    // the program's
constinit thread_local bool in_handler = false;  // the program's handler has called ours, which it found installed

const void* code_of(const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(context.uc_mcontext.gregs[REG_RIP]);  // NOLINT(performance-no-int-to-ptr)
#else
  return reinterpret_cast<const void*>(context.uc_mcontext.pc);  // NOLINT(performance-no-int-to-ptr)
#endif
}

const char* access_of([[maybe_unused]] const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  constexpr long long write_bit = 2;  // of the page fault's error code
  return (context.uc_mcontext.gregs[REG_ERR] & write_bit) != 0 ? "write" : "read";
#else
  return "access";
#endif
}

bool is_function(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// The program's own action: its handler is called. The default action is put back: the instruction faults again when we
// return, and the core shows it. A signal that somebody sent does not come again by itself.
void pass_on(int number, siginfo_t* info, void* context) noexcept {
  if (!is_function(previous) || in_handler) {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, nullptr);
    if (info->si_code <= 0) raise(number);
    return;
  }
  in_handler = true;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(number, info, context);
  } else {
    previous.sa_handler(number);
  }
  in_handler = false;
}

void handle(int number, siginfo_t* info, void* context) noexcept {
  if (info->si_code > 0) {
    const auto& where = *static_cast<const ucontext_t*>(context);
    on_fault({.address = info->si_addr, .code = code_of(where), .access = access_of(where)});
  }
  pass_on(number, info, context);
}

}  // namespace

void watch_faults(void (*look)(const Fault& fault) noexcept) noexcept {
  struct sigaction now {};
  if (sigaction(SIGSEGV, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle) return;
  on_fault = look;
  previous = now;
  struct sigaction ours = now;  // with the program's mask
  ours.sa_sigaction = handle;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (is_function(now) ? now.sa_flags & (SA_NODEFER | SA_RESTART) : 0);
  sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace terrace::os
