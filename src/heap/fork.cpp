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
#include "base/hardened.h"
#include "heap/fast_path.h"
#include "heap/heap.h"
#include "os/open_files.h"
#include "os/threads.h"

namespace terrace::heap {

using level::words_of;

namespace {

// Of the forking thread, which takes them along into the child.
constinit thread_local unsigned forks_within = 0;  // begun by handlers while all is locked
constinit thread_local bool files_locked = false;

}  // namespace

void Heap::before_fork() noexcept {
  if (!ready()) return;
  if (os::Mutex::holds_all()) {
    ++forks_within;
    return;
  }
  if (os::single_threaded() || os::Mutex::holds_any()) return;
  files_locked = os::lock_open_files();
  checker_.before_fork();
  maintenance_.lock();
  switch_.lock();
  thread_slots_.mutex().lock();
  if (core_.rung() == percpu::Rung::getcpu) {
    for (unsigned i = 0; i < core_.slot_count(); ++i) core_.slot(i).lock.lock();
  }
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().lock();
  slabs_.lock_all();
  if constexpr (hardened) magazines_.mutex().lock();
  spans_.mutex().lock();
  os::Mutex::set_holds_all(true);
}

void Heap::after_fork_in_parent() noexcept {
  if (!os::Mutex::holds_all()) return;
  if (forks_within != 0) {
    --forks_within;
    return;
  }
  os::Mutex::set_holds_all(false);
  spans_.mutex().unlock();
  if constexpr (hardened) magazines_.mutex().unlock();
  slabs_.unlock_all();
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().unlock();
  if (core_.rung() == percpu::Rung::getcpu) {
    for (unsigned i = 0; i < core_.slot_count(); ++i) core_.slot(i).lock.unlock();
  }
  thread_slots_.mutex().unlock();
  switch_.unlock();
  maintenance_.unlock();
  checker_.after_fork_in_parent();
  if (files_locked) os::unlock_open_files();
  files_locked = false;
}

void Heap::after_fork_in_child() noexcept {
  if (!ready()) return;
  files_locked = false;  // libc has reset the lock
  if (os::Mutex::holds_all()) {
    if (forks_within != 0) {
      --forks_within;
      return;
    }
    reset_locks_in_child();
    repair_in_child();
  }
  // Children of vfork are the parent's. But if this process was forked by one, its thread has the rseq area of a thread that
  // the kernel does not know here: it stays closed, and the fast path with it.
  const unsigned closed = ThreadSlots::times_closed();
  if (vfork_children_ == closed) return;
  vfork_children_ = closed;
  if (closed == 0) enable_fast_path();
}

void Heap::reset_locks_in_child() noexcept {
  os::Mutex::set_holds_all(false);
  spans_.reset_after_fork();
  slabs_.reset_after_fork();
  if constexpr (hardened) magazines_.mutex().reset_after_fork();
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().reset_after_fork();
  if (core_.rung() == percpu::Rung::getcpu) {
    for (unsigned i = 0; i < core_.slot_count(); ++i) core_.slot(i).lock.reset_after_fork();
  }
  thread_slots_.mutex().reset_after_fork();
  switch_.reset_after_fork();
  maintenance_.reset_after_fork();
  checker_.after_fork_in_child();
}

// What other threads had taken apart in that instant without holding a lock for it, goes together again here: one thread, no
// lock held, everything else usable.
void Heap::repair_in_child() noexcept {
  for (unsigned i = 0; i < core_.slot_count(); ++i) {
    // A thread of the parent was stopping this slot: what it held is lost, the words are not.
    for (ChainWord& word : words_of(core_.slot(i))) {
      if (word == chain::stopped) word = chain::empty;
    }
  }
  if (core_.rung() == percpu::Rung::thread) thread_slots_.adopt_orphans();
}

// The child of vfork runs on its parent's thread pointer, but the kernel does not keep that rseq area up to date for it: its
// sequences would not be aborted, its slot may be somebody else's by now. So while one exists, everybody takes the cold way,
// where the thread-local word tells parent and child from all others.
//
// Children nest: a child that calls vfork is the parent of another, on the same thread-local data, and one that is killed while
// it waits never comes back. So each call remembers how often the thread was closed before it, in a register (vfork.S), and
// goes back to that number, whatever those within have left. A thread that was closed for another reason (its exit) stays so.
unsigned Heap::enter_vfork() noexcept {
  const unsigned before = ThreadSlots::times_closed();
  if (!ready()) return before;
  ThreadSlots::set_closed(before + 1);
  const os::LockGuard guard(switch_);
  ++vfork_children_;
  disable_fast_path();
  return before;
}

void Heap::leave_vfork(unsigned before) noexcept {
  const unsigned within = ThreadSlots::times_closed() - before;
  if (within == 0) return;
  {
    const os::LockGuard guard(switch_);
    vfork_children_ -= within;
    if (vfork_children_ == 0) enable_fast_path();
  }
  ThreadSlots::set_closed(before);
}

}  // namespace terrace::heap
