// SPDX-License-Identifier: MIT OR Apache-2.0
// libc's list of open FILEs. Its lock stands before every lock of an allocator: who holds it waits for a FILE, and who holds a
// FILE may allocate. fork takes it after the prepare handlers; a handler that locks an allocator has to take it before.
#pragma once

namespace terrace::os {

/// Locks the list for the calling thread, which may lock it again (libc's fork does). False: libc does not let us.
bool lock_open_files() noexcept;
/// In the thread that locked. Not in a forked child: libc has reset the lock there.
void unlock_open_files() noexcept;

}  // namespace terrace::os
