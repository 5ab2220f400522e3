// SPDX-License-Identifier: MIT OR Apache-2.0
// What the library remembers of a thread, and whose it is where two tasks run on one thread pointer.
//
// A child of clone(CLONE_VM) without a thread pointer of its own runs on its parent's, beside it, for as long as it likes, and
// longer than that thread. It shares the parent's thread-local data and rseq area; to the kernel it is another task, for which
// the area is not kept. One with a thread pointer that libc knows nothing of (CLONE_SETTLS) has an area that nobody keeps. Such
// a child is a companion. A companion is closed to the slots of the core level, and has its own state, in a list, not
// in thread-local data; while the list has a living one, everybody looks whether the list names his thread pointer, and if it
// does, asks the kernel who he is. The child of vfork is none: its parent waits, so it may borrow the parent's
// state; but where a companion shares the thread pointer, it is one.
//
// Invariants
//   C1  A companion is in the list, with its tid, before it runs the caller's code or takes a signal, and until the kernel says
//       that it has left the memory.
//   C2  Whoever else runs on a thread pointer that the list names has the thread's own state. So what a task holds while a
//       companion comes or goes stays counted in one place.
//   C3  The fast paths of malloc and free are off while the list has a member (heap/fast_path/fast_path_switch.h).
#pragma once

#include "os/lock_order.h"

#include <atomic>
#include <cstdint>

namespace terrace::os {

struct ThreadState {
  volatile int mutexes = 0;          // held, or about to be
  volatile unsigned slot_locks = 0;  // rung getcpu: held, one and one for each handler that has interrupted a holder
  bool holds_all = false;            // mutexes: between the handlers of fork
  bool companion = false;
  unsigned closed = 0;             // to the core level: how often
  const void* identity = nullptr;  // null: the address of this
#if defined(TERRACE_ASSERTIONS)
  LockOrder::Held locks{};
#endif
};

extern constinit thread_local ThreadState state_of_thread;
extern constinit std::atomic<std::uint32_t> companions;

ThreadState& state_beside_companions() noexcept __attribute__((cold, noinline));

/// Of the calling task.
inline ThreadState& thread_state() noexcept {
  // relaxed: a companion and whoever shares its thread pointer were made by one who had counted it, or have done so themselves.
  if (companions.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return state_beside_companions();
  return state_of_thread;
}

struct Companion {
  std::atomic<std::uintptr_t> thread_pointer;  // 0: unused
  // As the companion itself sees it. The kernel writes it before the first instruction, and 0 when the companion has ended or
  // has another program (CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID). Where the caller wants these for himself, the companion
  // writes it.
  std::uint32_t tid;
  std::atomic<std::int32_t> probed;  // 0, or the tid in the parent's eyes, where the kernel does not tell
  ThreadState state;
  Companion* next;  // of all there ever were
};

// One caller at a time adds and removes (heap/fast_path/fast_path_switch.h).
/// Null: there is no memory.
Companion* add_companion(std::uintptr_t thread_pointer) noexcept;
/// Whether the list names the calling task's thread pointer.
bool on_listed_thread_pointer() noexcept;
/// The calling task is `c`, and the kernel has not written that.
void become(Companion& c) noexcept;
/// Of `tid` in a companion: the caller knows that it is gone, or never was.
void end_companion(std::uint32_t* tid) noexcept;
/// The kernel does not tell: it is there as long as somebody has that tid, as the caller sees it.
void probe(Companion& c, int tid) noexcept;
/// Whether none is left.
bool remove_gone_companions() noexcept;
/// In a forked child, which has none. If a companion has forked, its state becomes the thread's. Whether there were any in the
/// parent: if so, nobody knows whether the kernel keeps the thread's rseq area.
bool forget_companions() noexcept;

}  // namespace terrace::os
