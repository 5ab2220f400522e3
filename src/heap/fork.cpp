// SPDX-License-Identifier: MIT OR Apache-2.0
// fork: the child has one thread and a copy of memory as it was at one instant. Words of slots are consistent at every instant
// (one store each). Locks are taken before, in the order of their ranks, so that what they guard is consistent too. What other
// threads had in their hands in that instant (blocks, a chain on its way) is as lost as any block they had allocated.
//
// A process of one thread needs none of that: nobody else is inside, and where the thread is itself (fork in a signal handler),
// it is in the child, too, and goes on there. Each lock that is taken costs the page it lies on twice, once in either process.
#include "heap/fast_path.h"
#include "heap/heap.h"
#include "os/threads.h"

namespace terrace::heap {

using level::words_of;

void Heap::before_fork() noexcept {
  if (!ready()) return;
  if (os::single_threaded()) {
    locked_for_fork_ = false;
    return;
  }
  maintenance_.lock();
  switch_.lock();
  thread_slots_.mutex().lock();
  if (core_.rung() == percpu::Rung::getcpu) {
    for (unsigned i = 0; i < core_.slot_count(); ++i) core_.slot(i).lock.lock();
  }
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().lock();
  slabs_.lock_all();
  spans_.mutex().lock();
  os::Mutex::set_holds_all(true);
  locked_for_fork_ = true;
}

void Heap::after_fork_in_parent() noexcept {
  if (!ready() || !locked_for_fork_) return;
  os::Mutex::set_holds_all(false);
  spans_.mutex().unlock();
  slabs_.unlock_all();
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().unlock();
  if (core_.rung() == percpu::Rung::getcpu) {
    for (unsigned i = 0; i < core_.slot_count(); ++i) core_.slot(i).lock.unlock();
  }
  thread_slots_.mutex().unlock();
  switch_.unlock();
  maintenance_.unlock();
}

void Heap::after_fork_in_child() noexcept {
  if (!ready()) return;
  if (locked_for_fork_) reset_locks_in_child();
  if (vfork_children_ != 0) {  // they are the parent's
    vfork_children_ = 0;
    enable_fast_path();
  }
  if (locked_for_fork_ && core_.rung() == percpu::Rung::thread) thread_slots_.adopt_orphans();
}

void Heap::reset_locks_in_child() noexcept {
  os::Mutex::set_holds_all(false);
  spans_.reset_after_fork();
  slabs_.reset_after_fork();
  for (unsigned i = 0; i < depots_.count(); ++i) depots_.at(i).mutex().reset_after_fork();
  for (unsigned i = 0; i < core_.slot_count(); ++i) {
    level::Slot& slot = core_.slot(i);
    if (core_.rung() == percpu::Rung::getcpu) slot.lock.reset_after_fork();
    // A thread of the parent was stopping this slot: what it held is lost, the words are not.
    for (ChainWord& word : words_of(slot)) {
      if (word == chain::stopped) word = chain::empty;
    }
  }
  thread_slots_.mutex().reset_after_fork();
  maintenance_.reset_after_fork();
  switch_.reset_after_fork();
}

// The child of vfork runs on its parent's thread pointer, but the kernel does not keep that rseq area up to date for it: its
// sequences would not be aborted, its slot may be somebody else's by now. So while one exists, everybody takes the cold way,
// where the thread-local word tells parent and child from all others.
void Heap::enter_vfork() noexcept {
  if (!ready()) return;
  {
    const os::LockGuard guard(switch_);
    ++vfork_children_;
    disable_fast_path();
  }
  ThreadSlots::close();
}

void Heap::leave_vfork() noexcept {
  if (!ready()) return;
  ThreadSlots::reopen();
  const os::LockGuard guard(switch_);
  if (--vfork_children_ == 0) enable_fast_path();
}

}  // namespace terrace::heap
