// SPDX-License-Identifier: MIT OR Apache-2.0
#include "vmem/fork.h"

#include "vmem/arena_list.h"

namespace terrace::vmem {

void lock_arenas() noexcept { arenas.lock(); }
void unlock_arenas() noexcept { arenas.unlock(); }
void reset_arenas_after_fork() noexcept { arenas.reset_after_fork(); }

}  // namespace terrace::vmem
