// SPDX-License-Identifier: MIT OR Apache-2.0
// clone() of libc, for children that share the memory or get a copy of it. glibc's own pthread_create and posix_spawn do not
// come by here: their threads are registered with rseq, their children call nothing of ours. Not where libc exports nothing
// that does the work.
#include "arch/cpu.h"
#include "base/attributes.h"
#include "heap/heap.h"
#include "shim/process.h"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <sched.h>

#if !defined(TERRACE_SANITIZED) && defined(__GLIBC__)

using terrace::heap::heap;

namespace {

struct Copied {
  int (*run)(void*);
  void* argument;
};

// In the child; what is copied lies in its copy of the parent's frame.
int run_copied(void* copied) {
  const Copied mine = *static_cast<const Copied*>(copied);
  terrace::shim::copied_in_child();
  return mine.run(mine.argument);
}

struct Unannounced {
  int (*run)(void*);
  void* argument;
  terrace::os::Companion* companion;
  sigset_t signals;  // that the caller has blocked
};

// In the child, all signals blocked; what is passed lies on its stack.
int run_unannounced(void* passed) {
  const Unannounced& mine = *static_cast<const Unannounced*>(passed);
  become(*mine.companion);
  pthread_sigmask(SIG_SETMASK, &mine.signals, nullptr);
  return mine.run(mine.argument);
}

}  // namespace

extern "C" {

int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...);  // NOLINT

// A child with a copy of the memory is one of fork, but with the thread pointer of another, or while its parent waits with all
// locks held.
//
// A parent that waits (CLONE_VFORK) lends its thread, as to a child of vfork. Any other child is a companion
// (os/thread_state.h) until the kernel says that it has left the memory: through a word of ours, or, where the caller has named
// one himself, when its tid is free. Beside a companion nothing is lent.
TERRACE_EXPORT int clone(int (*run)(void*), void* stack, int flags, void* argument, ...) noexcept {
  va_list more;
  va_start(more, argument);
  void* const parent_tid = va_arg(more, void*);
  void* const thread_pointer = va_arg(more, void*);
  void* const child_tid = va_arg(more, void*);
  va_end(more);
  if ((flags & CLONE_VM) == 0 && (flags & (CLONE_SETTLS | CLONE_VFORK)) == 0) {
    Copied copied{.run = run, .argument = argument};
    terrace::shim::before_copy();
    const int child =
        __clone(run == nullptr ? nullptr : run_copied, stack, flags, &copied, parent_tid, thread_pointer, child_tid);
    terrace::shim::copied_in_parent();
    return child;
  }
  if ((flags & CLONE_VM) == 0 || run == nullptr || stack == nullptr)
    return __clone(run, stack, flags, argument, parent_tid, thread_pointer, child_tid);
  const bool shares_pointer = (flags & CLONE_SETTLS) == 0;
  if (shares_pointer && (flags & CLONE_VFORK) != 0 && !terrace::os::on_listed_thread_pointer()) {
    const std::uint64_t before = heap.enter_vfork().before;
    const int child = __clone(run, stack, flags, argument, parent_tid, thread_pointer, child_tid);
    heap.leave_vfork(before);
    return child;
  }
  terrace::os::Companion* const companion =
      heap.add_companion(shares_pointer ? terrace::arch::thread_pointer() : reinterpret_cast<std::uintptr_t>(thread_pointer));
  if (companion == nullptr) {
    errno = ENOMEM;
    return -1;
  }
  const bool kernel_tells = (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) == 0;
  int child = -1;
  if (kernel_tells) {
    flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    child = __clone(run, stack, flags, argument, parent_tid, thread_pointer, &companion->tid);
  } else {
    auto* const mine = static_cast<Unannounced*>(stack) - 1;
    *mine = {.run = run, .argument = argument, .companion = companion, .signals = {}};
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mine->signals);
    const sigset_t before = mine->signals;
    child = __clone(run_unannounced, mine, flags, mine, parent_tid, thread_pointer, child_tid);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  // Where the kernel tells, the entry may be another's by now.
  if (child < 0 || (!kernel_tells && (flags & CLONE_VFORK) != 0)) {
    terrace::os::end_companion(&companion->tid);
  } else if (!kernel_tells) {
    terrace::os::probe(*companion, child);
  }
  return child;
}
}

#endif
