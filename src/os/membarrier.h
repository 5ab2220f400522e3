// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

namespace terrace::os {

/// Registers the process for restart_all_sequences(). False: the kernel does not have it.
bool register_sequence_barrier() noexcept;
/// When this returns, every restartable sequence of this process that was running has been aborted or has ended, and its
/// stores are visible here. True on success.
bool restart_all_sequences() noexcept;

}  // namespace terrace::os
