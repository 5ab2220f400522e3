// SPDX-License-Identifier: MIT OR Apache-2.0
// The life of the process: fork handlers, and the statistics at its end.
#include "shim/process.h"

#include "heap/heap.h"
#include "introspect/profile_dump.h"
#include "introspect/statistics.h"
#include "os/environment.h"
#include "os/mutex.h"
#include "percpu/transaction.h"

#include <pthread.h>

namespace terrace::shim {

void before_copy() noexcept { heap::heap.across_fork().before(false); }
void copied_in_parent() noexcept { heap::heap.across_fork().in_parent(); }
void copied_in_child() noexcept {
  heap::heap.across_fork().in_child();
  percpu::after_fork_in_child();
  // The snapshot goes through all locks: where a handler forked, one of them may be held by the code that it interrupted.
  const bool held_all = os::Mutex::holds_all();
  os::Mutex::set_holds_all(true);
  introspect::forget_parent();
  os::Mutex::set_holds_all(held_all);
}

namespace {

void before_fork() { heap::heap.across_fork().before(true); }

// As early as constructors go, and the shared object is initialised before any other (-z initfirst): pthread_atfork runs
// `before` handlers last first and the others first first, so ours are closest to the fork on either side
// (heap/across_fork.cpp). That is before libc has set `environ`, which it gives to constructors, however.
#if defined(__GLIBC__)
__attribute__((constructor(101))) void at_start(int /*count*/, char** /*arguments*/, char** variables) {
  os::keep_environment(variables);
#else
__attribute__((constructor(101))) void at_start() {
  os::keep_environment(nullptr);
#endif
  // What is asked of the kernel once is asked now, if no allocation has done so: the program may enter a sandbox later.
  heap::heap.ready();
  pthread_atfork(before_fork, copied_in_parent, copied_in_child);
  introspect::prepare_report();
  introspect::prepare_profile_dump();
}

__attribute__((destructor(101))) void at_end() {
  if (heap::heap.checker().on()) heap::heap.checker().sweep("exit");
  introspect::report_at_exit();
}

}  // namespace

extern "C" {
// Called by vfork.S around the system call, in the parent (which is also where the child runs).
__attribute__((visibility("hidden"))) heap::FastPathSwitch::Entered terrace_enter_vfork() { return heap::heap.enter_vfork(); }
__attribute__((visibility("hidden"))) void terrace_leave_vfork(std::uint64_t before, std::uint32_t* child_tid, long result) {
  if (child_tid != nullptr && result < 0) terrace::os::end_companion(child_tid);
  heap::heap.leave_vfork(before);
}
}

}  // namespace terrace::shim
