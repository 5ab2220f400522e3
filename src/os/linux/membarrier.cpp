// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/membarrier.h"

#include "os/syscall.h"

namespace terrace::os {
namespace {
// linux/membarrier.h of older distributions lacks the two.
constexpr long private_expedited_rseq = 1 << 7;
constexpr long register_private_expedited_rseq = 1 << 8;
}  // namespace

bool register_sequence_barrier() noexcept {
  return !failed(arch::raw_syscall(SYS_membarrier, register_private_expedited_rseq));
}

bool restart_all_sequences() noexcept { return !failed(arch::raw_syscall(SYS_membarrier, private_expedited_rseq)); }

}  // namespace terrace::os
