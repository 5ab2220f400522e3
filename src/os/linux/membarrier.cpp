// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/membarrier.h"

#include "os/syscall.h"
#include "os/threads.h"

#include <linux/prctl.h>

namespace terrace::os {
namespace {
// linux/membarrier.h of older distributions lacks the two.
constexpr long private_expedited_rseq = 1 << 7;
constexpr long register_private_expedited_rseq = 1 << 8;

// The kernel does not tell how many filters there are, without /proc. But who adds one to those of a container has to give up
// new privileges first, unless he is the machine's administrator. Errors are answers, too: they are compared.
struct Sandbox {
  long mode, no_new_privileges;
};
Sandbox sandbox_of_this_thread() noexcept {
  return {.mode = arch::raw_syscall(SYS_prctl, PR_GET_SECCOMP),
          .no_new_privileges = arch::raw_syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS)};
}
constinit Sandbox first_sandbox{};

}  // namespace

bool register_sequence_barrier() noexcept {
  first_sandbox = sandbox_of_this_thread();
  return !failed(arch::raw_syscall(SYS_membarrier, register_private_expedited_rseq));
}

bool may_restart_sequences() noexcept {
  if (single_threaded()) return true;
  const Sandbox now = sandbox_of_this_thread();
  return now.mode == first_sandbox.mode && now.no_new_privileges == first_sandbox.no_new_privileges;
}

// A further filter is not seen where new privileges were given up before the start.
bool may_open_files() noexcept {
  if (single_threaded()) return false;
  const Sandbox now = sandbox_of_this_thread();
  return now.mode == first_sandbox.mode && (now.mode == 0 || (now.mode > 0 && now.no_new_privileges == 0));
}

bool restart_all_sequences() noexcept {
  return single_threaded() || !failed(arch::raw_syscall(SYS_membarrier, private_expedited_rseq));
}

}  // namespace terrace::os
