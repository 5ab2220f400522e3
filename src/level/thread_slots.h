// SPDX-License-Identifier: MIT OR Apache-2.0
// The thread level: one slot per thread, for the rung without cpu numbers. A slot is taken at a thread's first allocation,
// drained at its end and used again by the next thread.
//
// `T` has `of_thread`, a SlotOfThread<T>. There is one hierarchy for each T: a thread's slot is found by the type.
#pragma once

#include "base/assert.h"
#include "base/described.h"
#include "level/closed.h"
#include "os/metadata.h"
#include "os/mutex.h"

#include <cstdint>
#include <pthread.h>

namespace terrace::level {

template <class T>
struct SlotOfThread {
  std::uint32_t owner;  // its number + 1, with `in_use` while a thread has it
  T* next;              // of all slots,
  T* next_free;         // and of those that no thread has

  static constexpr std::uint32_t in_use = 0x80000000;
  std::uint32_t number() const noexcept { return owner & ~in_use; }
};

template <class T>
class ThreadSlots {
 public:
  using Drain = void (*)(T& slot) noexcept;

  /// `drain` is called, at the end of a thread, with its slot.
  void open(Drain drain) noexcept {
    drain_ = drain;
    instance_ = this;
    pthread_key_t key = 0;
    has_key_ = pthread_key_create(&key, at_thread_exit) == 0;
    key_ = key;
  }

  /// The calling thread's slot; null when it is closed or a companion, memory is short, or libc has no key left to signal the
  /// thread's end: no one would drain the slot, so the thread bypasses the level.
  T* mine() noexcept {
    if (os::thread_state().companion) return nullptr;  // `mine_` is another's
    if (mine_ != nullptr) return mine_;
    if (Closed::to_this_thread() || !has_key_) return nullptr;
    return take_one();
  }

  /// All slots that ever existed, for statistics and draining; follow `of_thread.next`.
  T* all() const noexcept { return __atomic_load_n(&all_, __ATOMIC_ACQUIRE); }  // [T1] pairs with the release in add()

  os::RankedMutex<os::Rank::thread_slots>& mutex() noexcept { return mutex_; }
  /// In a forked child: drains and frees the slots of the parent's other threads.
  void adopt_orphans() noexcept {
    for (T* slot = all_; slot != nullptr; slot = slot->of_thread.next) {
      if (slot == mine_ || (slot->of_thread.owner & in_use) == 0) continue;
      drain_(*slot);
      leave(*slot);
    }
  }

 private:
  friend struct introspect::Layout;
  static constexpr std::uint32_t in_use = SlotOfThread<T>::in_use;

  __attribute__((noinline)) T* take_one() noexcept {
    {
      const os::LockGuard guard(mutex_);
      T* const slot = free_ != nullptr ? free_ : add();
      if (slot == nullptr) return nullptr;
      if (slot == free_) free_ = slot->of_thread.next_free;
      TERRACE_ASSERT((slot->of_thread.owner & in_use) == 0, "thread slots: one has two threads");
      slot->of_thread.owner |= in_use;
      mine_ = slot;
    }
    // It may allocate: mine_ is set already. It may fail, when memory is short: then the slot is not kept beyond this.
    if (pthread_setspecific(key_, mine_) != 0) give_up(*mine_);
    return mine_;
  }
  T* add() noexcept {
    auto* const slot = os::map_metadata<T>(os::Metadata::levels, 1);
    if (slot == nullptr) return nullptr;
    slot->of_thread.owner = ++made_;
    slot->of_thread.next = all_;
    __atomic_store_n(&all_, slot, __ATOMIC_RELEASE);  // [T1]
    return slot;
  }
  // Its thread has ended. The lock is held, or nobody else is there.
  void leave(T& slot) noexcept {
    TERRACE_ASSERT((slot.of_thread.owner & in_use) != 0, "thread slots: one is left twice");
    slot.of_thread.owner &= ~in_use;
    slot.of_thread.next_free = free_;
    free_ = &slot;
  }
  void give_up(T& slot) noexcept {
    drain_(slot);
    mine_ = nullptr;
    const os::LockGuard guard(mutex_);
    leave(slot);
  }
  static void at_thread_exit(void* slot) noexcept {
    instance_->give_up(*static_cast<T*>(slot));
    Closed::set_times(Closed::times() + 1);  // later frees go to the global level
  }

  static inline constinit thread_local T* mine_ = nullptr;
  static inline constinit ThreadSlots* instance_ = nullptr;

  os::RankedMutex<os::Rank::thread_slots> mutex_;
  T* all_ = nullptr;
  T* free_ = nullptr;  // under the lock
  std::uint32_t made_ = 0;
  Drain drain_ = nullptr;
  unsigned key_ = 0;
  bool has_key_ = false;
};

}  // namespace terrace::level
