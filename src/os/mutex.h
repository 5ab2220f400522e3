// SPDX-License-Identifier: MIT OR Apache-2.0
// A mutex of one word on futex: needs no constructor, works before TLS is there and after main has ended, and its state
// can be reset in a forked child.
#pragma once

#include "os/lock_order.h"
#include "os/thread_state.h"

#include <atomic>
#include <cstdint>

namespace terrace::os {

/// What all locks of a thread have in common, and how one works. Each is a RankedMutex.
class Mutex {
 public:
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  /// Between the handlers of fork the forking thread holds every mutex there is; what it calls then (handlers of others that
  /// allocate) goes through all of them.
  static void set_holds_all(bool value) noexcept {
    thread_state().holds_all = value;
    holder_of_all_ = value ? &thread_state() : nullptr;
  }
  static bool holds_all() noexcept { return thread_state().holds_all; }
  /// The state of the thread that does; null: none.
  static const ThreadState* holder_of_all() noexcept { return holder_of_all_; }
  /// Whether the calling thread holds a mutex or is about to: true in a signal handler that has interrupted such code.
  static bool holds_any() noexcept { return thread_state().mutexes != 0; }

 protected:
  constexpr Mutex() noexcept = default;
  ~Mutex() = default;

  void acquire(ThreadState& me) noexcept {
    count(me, 1);
    std::uint32_t expected = unlocked;
    // [M1] acquire, pairs with the release in release(): what the last holder wrote is seen.
    if (state_.compare_exchange_strong(expected, locked, std::memory_order_acquire, std::memory_order_relaxed)) [[likely]] {
      return;
    }
    lock_contended();
  }
  bool try_acquire(ThreadState& me) noexcept {
    count(me, 1);
    if (try_state()) return true;
    count(me, -1);
    return false;
  }
  void release(ThreadState& me) noexcept {
    // [M1] release, pairs with the acquire of the next holder.
    if (state_.exchange(unlocked, std::memory_order_release) == contended) [[unlikely]]
      wake_one();
    count(me, -1);
  }
  void reset() noexcept {
    forget();
    count(thread_state(), -1);
  }
  void forget() noexcept { state_.store(unlocked, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t unlocked = 0, locked = 1, contended = 2;

  static constinit const ThreadState* holder_of_all_;  // by the holder, while it is one

  // Counted before the attempt to lock and after unlocking, so that a handler in between is on the safe side.
  static void count(ThreadState& me, int by) noexcept { me.mutexes = me.mutexes + by; }
  bool try_state() noexcept {
    std::uint32_t expected = unlocked;
    return state_.compare_exchange_strong(expected, locked, std::memory_order_acquire,  // [M1]
                                          std::memory_order_relaxed);
  }

  void lock_contended() noexcept;
  void wake_one() noexcept;

  std::atomic<std::uint32_t> state_{unlocked};
};

/// A mutex that knows its place in the order of locks (os/lock_order.h). The rank is part of the type, so that the mutex is one
/// word of zeroes all the same.
template <Rank rank>
class RankedMutex : public Mutex {
 public:
  constexpr RankedMutex() noexcept = default;

  void lock() noexcept {
    ThreadState& me = thread_state();
    if (me.holds_all) [[unlikely]]
      return;
    LockOrder::expect(rank);
    acquire(me);
    LockOrder::locked(rank);
  }
  bool try_lock() noexcept {
    ThreadState& me = thread_state();
    if (me.holds_all) [[unlikely]]
      return true;
    if (!try_acquire(me)) return false;
    LockOrder::locked(rank);
    return true;
  }
  void unlock() noexcept {
    ThreadState& me = thread_state();
    if (me.holds_all) [[unlikely]]
      return;
    LockOrder::unlocked(rank);
    release(me);
  }
  /// In a forked child, by the only thread there is, which locked it: the parent's waiters do not exist here.
  void reset_after_fork() noexcept {
    LockOrder::unlocked(rank);
    reset();
  }
  /// As reset_after_fork(), whoever had it, if anybody: a thread that does not exist here, or code that a handler interrupted.
  void forget_holder() noexcept { forget(); }
};
static_assert(sizeof(RankedMutex<Rank::slot>) == sizeof(std::uint32_t));

template <Rank rank>
class LockGuard {
 public:
  explicit LockGuard(RankedMutex<rank>& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~LockGuard() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  RankedMutex<rank>& mutex_;
};

}  // namespace terrace::os
