// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/fast_path_switch.h"

#include "arch/cpu.h"
#include "heap/fast_path.h"
#include "level/closed.h"
#include "os/membarrier.h"
#include "os/memory.h"
#include "os/threads.h"

namespace terrace::heap {

constinit FastPath fast_path;

// [H2] The fast paths load a limit and then, if it is not 0, the fields written here, with nothing but the branch in between. A
// thread that was started by one that has been through Heap::ready(), or has been there itself, sees the fields anyway. Any
// other saw limits of 0 until now. Where loads stay in order that is enough. Elsewhere the processor may load a field first,
// before it was written, and a limit that was published after; so, once, before any limit is published, a barrier interrupts
// every running thread: what a thread loads after its interruption sees the fields, what it loaded before saw limits of 0. If
// the barrier is not to be had, the limits stay 0.
void FastPathSwitch::publish(const Wanted& wanted, const arch::Area& area) noexcept {
  wanted_ = wanted;
  fast_path.base = wanted.window->base();
  fast_path.slots = wanted.slots;
  fast_path.area = area;
  is_seen_ = arch::loads_stay_in_order || os::single_threaded() || os::restart_all_sequences();
}

void FastPathSwitch::enable() noexcept {
  if (!is_seen_) return;
  // [H2] release: on x86-64 an order for the compiler only; elsewhere one more reason.
  if (wanted_.sizes) {
    __atomic_store_n(&fast_path.size_limit, SizeRule::largest, __ATOMIC_RELEASE);
    if (wanted_.below_page) __atomic_store_n(&fast_path.below_page_limit, os::smallest_page - 1, __ATOMIC_RELEASE);
  }
  if (wanted_.sublines) __atomic_store_n(&fast_path.subline_limit, subline_classes * SizeRule::quantum, __ATOMIC_RELEASE);
  __atomic_store_n(&fast_path.extent_16ths, wanted_.window->extent() / 16, __ATOMIC_RELEASE);
}

void FastPathSwitch::disable() noexcept {
  __atomic_store_n(&fast_path.subline_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fast_path.below_page_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fast_path.size_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fast_path.extent_16ths, std::uintptr_t{0}, __ATOMIC_SEQ_CST);
}

void FastPathSwitch::below_page_off() noexcept {
  wanted_.below_page = false;
  __atomic_store_n(&fast_path.below_page_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
}

void FastPathSwitch::follow_frontier() noexcept {
  if (!is_seen_) return;
  const std::uintptr_t extent_16ths = wanted_.window->extent() / 16;
  if (__atomic_load_n(&fast_path.extent_16ths, __ATOMIC_RELAXED) == extent_16ths) return;
  if (!mutex_.try_lock()) return;                                                                       // next time
  if (vfork_children_ == 0) __atomic_store_n(&fast_path.extent_16ths, extent_16ths, __ATOMIC_RELEASE);  // [H2]
  mutex_.unlock();
}

// The child of vfork runs on its parent's thread pointer, but the kernel does not keep that rseq area up to date for it: its
// sequences would not be aborted, its slot may be somebody else's by now. So while one exists, everybody takes the cold way,
// where the thread-local word tells parent and child from all others.
//
// Children nest: a child that calls vfork is the parent of another, on the same thread-local data, and one that is killed while
// it waits never comes back. So each call remembers how often the thread was closed before it, in a register (vfork.S), and
// goes back to that number, whatever those within have left. A thread that was closed for another reason (its exit) stays so.
unsigned FastPathSwitch::enter_vfork(bool heap_is_open) noexcept {
  const unsigned before = level::Closed::times();
  if (!heap_is_open) return before;
  level::Closed::set_times(before + 1);
  const os::LockGuard guard(mutex_);
  ++vfork_children_;
  disable();
  return before;
}

void FastPathSwitch::leave_vfork(unsigned before) noexcept {
  const unsigned within = level::Closed::times() - before;
  if (within == 0) return;
  {
    const os::LockGuard guard(mutex_);
    vfork_children_ -= within;
    if (vfork_children_ == 0) enable();
  }
  level::Closed::set_times(before);
}

// Children of vfork are the parent's. But if this process was forked by one, its thread has the rseq area of a thread that the
// kernel does not know here: it stays closed, and the fast path with it.
void FastPathSwitch::after_fork_in_child() noexcept {
  const unsigned closed = level::Closed::times();
  if (vfork_children_ == closed) return;
  vfork_children_ = closed;
  if (closed == 0) enable();
}

}  // namespace terrace::heap
