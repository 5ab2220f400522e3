// SPDX-License-Identifier: MIT OR Apache-2.0
// fork: the child has one thread and a copy of memory as it was at one instant. Words of slots are consistent at every instant
// (one store each). What locks guard is not, so they are taken before, in the order of their ranks, and the child finds it
// whole. What other threads had in their hands in that instant (blocks, a magazine on its way) is as lost as any block they had
// allocated; what they had taken out of the lists without a lock, repair_in_child() puts back.
//
// Locks that are held from one handler to the other are held while others' code runs: whatever that waits for must not wait for
// them. There are three kinds of it.
//   1  libc's own part of fork takes the lock of the list of FILEs. Who has that lock waits for each FILE in turn (fflush(0)),
//      and who has a FILE's lock may be in malloc (getline). So that lock comes first in the order, before all of ours, and is
//      released last; it is recursive, and libc takes it once more. In the child libc resets it: there it is not ours any more.
//      Nothing else that libc locks between the handlers (the switch of name services; its own malloc, which nobody uses) is
//      held around an allocation.
//   2  Prepare handlers of others that run after ours, since they were registered before. They may allocate: the thread passes
//      all mutexes. Waiting for another thread that allocates would be waiting for itself; so the shared object is initialised
//      before any other (linked with -z initfirst), and registers first: there are no such handlers, and no child or parent
//      handlers before ours. Known remainder: the archive in a program whose libraries register at their start.
//   3  A handler of a signal that has interrupted the allocator and forks. The thread may hold some of the locks itself and
//      could wait for itself. So nothing is locked then: the parent goes on, the child may exec or _exit, and may go on unless
//      another thread was inside in that instant; then it stops at that thread's lock.
// The alternative, to hold nothing and have the child rebuild what other threads had half changed, would make every list of
// slabs and spans consistent after each single store, for the one process in thousands that forks in such a moment.
//
// A handler that forks (2) comes here again while everything is locked: only the outermost of the calls counts. Its child is in
// the same handler, with everything locked by itself, and reaches the outer fork, or exec, in its turn.
//
// A process of one thread needs none of that: nobody else is inside, and where the thread is itself (fork in a signal handler),
// it is in the child, too, and goes on there. Each lock that is taken costs the page it lies on twice, once in either process.
#include "heap/across_fork.h"

#include "base/hardened.h"
#include "heap/heap.h"
#include "os/open_files.h"
#include "os/thread_state.h"
#include "os/threads.h"

namespace terrace::heap {

namespace {

// Of the forking thread, which takes them along into the child.
constinit thread_local unsigned forks_within = 0;  // begun by handlers while all is locked
constinit thread_local bool files_locked = false;

}  // namespace

// In the order of their ranks.
void AcrossFork::lock_all() noexcept {
  if (upper_locks_ != nullptr) upper_locks_->lock();
  heap_.checker_.before_fork();
  heap_.levels_.objects_mutex().lock();
  heap_.maintenance_.draining().mutex().lock();
  heap_.fast_path_switch_.mutex().lock();
  heap_.core().of_threads().mutex().lock();
  if (!heap_.core().has_sequences()) percpu::lock_slots();
  heap_.levels_.processors().lock_all();
  heap_.levels_.nodes().lock_all();
  heap_.slabs_.lock_all();
  if constexpr (hardened) heap_.levels_.magazines().mutex().lock();
  heap_.spans_.mutex().lock();
}

void AcrossFork::unlock_all() noexcept {
  heap_.spans_.mutex().unlock();
  if constexpr (hardened) heap_.levels_.magazines().mutex().unlock();
  heap_.slabs_.unlock_all();
  heap_.levels_.nodes().unlock_all();
  heap_.levels_.processors().unlock_all();
  if (!heap_.core().has_sequences()) percpu::unlock_slots();
  heap_.core().of_threads().mutex().unlock();
  heap_.fast_path_switch_.mutex().unlock();
  heap_.maintenance_.draining().mutex().unlock();
  heap_.levels_.objects_mutex().unlock();
  heap_.checker_.after_fork_in_parent();
  if (upper_locks_ != nullptr) upper_locks_->unlock();
}

void AcrossFork::reset_locks_in_child() noexcept {
  heap_.spans_.reset_after_fork();
  heap_.slabs_.reset_after_fork();
  if constexpr (hardened) heap_.levels_.magazines().mutex().reset_after_fork();
  heap_.levels_.nodes().reset_after_fork();
  heap_.levels_.processors().reset_after_fork();
  if (!heap_.core().has_sequences()) percpu::reset_slots_after_fork();
  heap_.core().of_threads().mutex().reset_after_fork();
  heap_.fast_path_switch_.mutex().reset_after_fork();
  heap_.maintenance_.draining().mutex().reset_after_fork();
  heap_.levels_.objects_mutex().reset_after_fork();
  heap_.checker_.after_fork_in_child();
  if (upper_locks_ != nullptr) upper_locks_->reset();
}

// What other threads had taken apart in that instant without holding a lock for it, goes together again here: one thread, no
// lock held, everything else usable.
void AcrossFork::repair_in_child() noexcept {
  for (unsigned i = 0; i < heap_.core().slot_count(); ++i) {
    level::Slot& slot = heap_.core().slot(i);
    CoreLevel::start_in_child(level::words_of(slot));
    heap_.core().for_each_chunk(slot, [](level::ObjectWords& o, unsigned) { CoreLevel::start_in_child(level::words_of(o)); });
  }
  object_classes.for_each([](HomeClass h) { object_classes[h].on_the_way.store(0, std::memory_order_relaxed); });
  if (heap_.core().rung() == percpu::Rung::thread) heap_.core().of_threads().adopt_orphans();
}

void AcrossFork::before(bool with_open_files) noexcept {
  if (!heap_.ready()) return;
  if (os::Mutex::holds_all()) {
    ++forks_within;
    return;
  }
  if (os::single_threaded() || os::Mutex::holds_any()) return;
  files_locked = with_open_files && os::lock_open_files();
  lock_all();
  os::Mutex::set_holds_all(true);
}

void AcrossFork::in_parent() noexcept {
  if (!os::Mutex::holds_all()) return;
  if (forks_within != 0) {
    --forks_within;
    return;
  }
  os::Mutex::set_holds_all(false);
  unlock_all();
  if (files_locked) os::unlock_open_files();
  files_locked = false;
}

void AcrossFork::in_child() noexcept {
  const bool had_companions = os::forget_companions();
  if (!heap_.ready()) return;
  files_locked = false;  // libc has reset the lock
  if (os::Mutex::holds_all()) {
    if (forks_within != 0) {
      --forks_within;
      return;
    }
    os::Mutex::set_holds_all(false);
    reset_locks_in_child();
    repair_in_child();
  }
  heap_.fast_path_switch_.after_fork_in_child(had_companions);
  if (upper_locks_ != nullptr) upper_locks_->in_child();
}

}  // namespace terrace::heap
