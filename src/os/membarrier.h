// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

namespace terrace::os {

/// Registers the process for restart_all_sequences(), and notes in what sandbox it is. False: the kernel does not have it, or
/// the sandbox refuses it.
bool register_sequence_barrier() noexcept;
/// Whether restart_all_sequences() is worth a try. Not in a thread that has entered a sandbox since the registration: who
/// writes a list of system calls looks at those of the program, and one that is not on it may end the process.
bool may_restart_sequences() noexcept;
/// Whether the calling thread is known to be in no other sandbox than at the registration, so that it may make calls that are
/// not promised (docs/guide/system-calls.md). False in a process of one thread, which asks nothing.
bool may_open_files() noexcept;
/// When this returns true, every restartable sequence of this process that was running has been aborted or has ended, and its
/// stores are visible here. No system call in a process of one thread: its own sequence, if a signal handler that calls this
/// has interrupted one, is aborted already.
bool restart_all_sequences() noexcept;

}  // namespace terrace::os
