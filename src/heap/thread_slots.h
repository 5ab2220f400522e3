// SPDX-License-Identifier: MIT OR Apache-2.0
// The thread level: one slot per thread, for the rung where nothing tells on which cpu a thread runs. A slot is taken at a
// thread's first allocation, drained at its end and used again by the next thread.
//
// The same thread-local word closes the core level to a thread: for a vfork child, which shares its parent's rseq area without
// being registered, and for what a thread frees after its slot was given back.
#pragma once

#include "level/slot.h"
#include "os/mutex.h"

namespace terrace::heap {

class ThreadSlots {
 public:
  using Drain = void (*)(level::Slot& slot) noexcept;

  /// `drain` is called, at the end of a thread, with its slot.
  void open(Drain drain) noexcept;

  /// The calling thread's slot; null when it is closed, memory is short, or libc has no key left to tell of the thread's end:
  /// then nobody would drain the slot, and the thread works past it.
  level::Slot* mine() noexcept;

  /// Whether the calling thread may use no slot at all.
  static bool closed() noexcept { return times_closed_ != 0; }
  /// How often it was closed: by vfork, whose children nest, and by its exit.
  static unsigned times_closed() noexcept { return times_closed_; }
  static void set_closed(unsigned times) noexcept { times_closed_ = times; }

  /// All slots that ever existed, for statistics and draining; follow `next`.
  level::Slot* all() const noexcept {
    return __atomic_load_n(&all_, __ATOMIC_ACQUIRE);
  }  // [T1] pairs with the release in add()

  os::RankedMutex<os::Rank::thread_slots>& mutex() noexcept { return mutex_; }
  /// In a forked child: the slots of the threads that do not exist here are drained and free again.
  void adopt_orphans() noexcept;

 private:
  level::Slot* add() noexcept;
  void give_up(level::Slot& slot) noexcept;
  void leave(level::Slot& slot) noexcept;
  static void at_thread_exit(void* slot) noexcept;

  static constinit thread_local unsigned times_closed_;

  os::RankedMutex<os::Rank::thread_slots> mutex_;
  level::Slot* all_ = nullptr;
  level::Slot* free_ = nullptr;  // under the lock
  std::uint32_t made_ = 0;
  Drain drain_ = nullptr;
  unsigned key_ = 0;
  bool has_key_ = false;
};

}  // namespace terrace::heap
