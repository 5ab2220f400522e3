// SPDX-License-Identifier: MIT OR Apache-2.0
// fork: what arenas guard by locks is whole in the child if the forking thread holds these locks. To be called by the process's
// fork handlers, before those of malloc lock and after they unlock: the program may allocate while an arena is locked
// (vmem_walk). A span that another thread was importing or giving back in that instant is lost to the child, as is whatever
// else such a thread had in its hands.
#pragma once

namespace terrace::vmem {

void lock_arenas() noexcept;
/// In the parent.
void unlock_arenas() noexcept;
/// In the child, by the thread that called lock_arenas().
void reset_arenas_after_fork() noexcept;

}  // namespace terrace::vmem
