// SPDX-License-Identifier: MIT OR Apache-2.0
// Stopping the world: how many threads run, and one of them that waits until it is alone.
//
// A thread that blocks and comes back costs two atomic operations. Nobody is woken but the collector, by the last thread that
// it waits for, and those that came back while it was at work.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace lab_bench {

using Word = std::atomic<std::uint32_t>;

/// Returns when somebody wakes the word, when it is not `seen`, or for no reason.
inline void futex_wait(const Word& word, std::uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
inline void futex_wake(const Word& word, int threads) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

class World {
 public:
  /// The calling thread runs from now on; waits while the world is stopped.
  void enter() {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    for (;;) {
      if ((state & stop) != 0) {
        futex_wait(stopped_, 1);
        state = state_.load(std::memory_order_relaxed);
      } else if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return;  // acquire, pairs with the release in start(): what the collector did is seen
      }
    }
  }
  /// It does not any more: it may be asleep for as long as it likes.
  void leave() {
    // release, pairs with the acquire in try_stop(): what the thread did is seen
    const std::uint32_t state = state_.fetch_sub(1, std::memory_order_release) - 1;
    if (state == (stop | 1)) futex_wake(state_, 1);
  }
  /// To be looked at by running threads; if so, they leave and enter.
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed) != 0; }

  /// By a running thread: returns when it is the only one. False: another one was faster, and is done by now.
  bool try_stop() {
    if ((state_.fetch_or(stop, std::memory_order_acquire) & stop) != 0) {
      leave();
      enter();
      return false;
    }
    stopped_.store(1, std::memory_order_relaxed);
    for (;;) {
      const std::uint32_t state = state_.load(std::memory_order_acquire);
      if (state == (stop | 1)) return true;
      futex_wait(state_, state);
    }
  }
  void start() {
    stopped_.store(0, std::memory_order_relaxed);
    state_.fetch_and(~stop, std::memory_order_release);
    futex_wake(stopped_, INT_MAX);
  }

 private:
  static constexpr std::uint32_t stop = std::uint32_t{1} << 31;
  alignas(128) Word state_{0};    // running threads; `stop`: no others begin to
  alignas(128) Word stopped_{0};  // 1 while stopped: what running threads look at and others wait for
};

}  // namespace lab_bench
