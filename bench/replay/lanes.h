// SPDX-License-Identifier: MIT OR Apache-2.0
// What the threads of a replay share: places of blocks that several of them use, and who may go on.
#pragma once

#include "plan.h"

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench::replay {

inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}
inline void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Long enough for a neighbour's few calls, short against a sleep.
inline constexpr int spins = 200;

/// A place whose block goes from thread to thread.
class SharedPlace {
 public:
  /// Until the place has seen `turn` events. Acquires what the thread that did the last one wrote.
  void await(std::uint32_t turn) {
    for (int i = 0; i < spins; ++i) {
      if ((turn_.load(std::memory_order_acquire) & ~waited_for) == turn) return;  // pairs with advance()
      relax();
    }
    for (;;) {
      std::uint32_t seen = turn_.load(std::memory_order_acquire);
      if ((seen & ~waited_for) == turn) return;
      if ((seen & waited_for) == 0 && !turn_.compare_exchange_strong(seen, seen | waited_for)) continue;
      futex_wait(turn_, seen | waited_for);
    }
  }
  void advance(std::uint32_t turn) {
    if ((turn_.exchange(turn + 1, std::memory_order_acq_rel) & waited_for) != 0) futex_wake_all(turn_);
  }
  void reset() { turn_.store(0, std::memory_order_relaxed); }

  void* block = nullptr;

 private:
  static constexpr std::uint32_t waited_for = 1U << 31;
  std::atomic<std::uint32_t> turn_{0};
};

/// How far a thread has come: it has done everything before this sequence number. At first that of its first call.
struct alignas(128) Progress {
  std::atomic<std::uint64_t> sequence{0};
  std::uint64_t first = 0;
};

/// Keeps the threads within `window` of each other.
class Pace {
 public:
  static constexpr std::uint64_t ended = UINT64_MAX;

  /// In the order of their first calls.
  Pace(Progress* all, std::size_t count) : all_(all), count_(count) {}

  /// This thread has done everything before `sequence`.
  void reach(Progress& mine, std::uint64_t sequence) {
    const std::uint64_t before = mine.sequence.load(std::memory_order_relaxed);
    mine.sequence.store(sequence, std::memory_order_seq_cst);  // before the load of wanted_: (1), with (2)
    const std::uint64_t wanted = wanted_.load(std::memory_order_seq_cst);
    // Whoever is the last to pass what a sleeper waits for wakes all; they look again, and sleep again if need be.
    if (before < wanted && sequence >= wanted) wake_all();
  }

  void await(std::uint64_t sequence) {
    if (sequence < window) return;
    const std::uint64_t least = sequence - window;
    if (passed_soon(least)) return;
    for (;;) {
      const std::uint32_t rung = bell_.load(std::memory_order_seq_cst);
      std::uint64_t wanted = wanted_.load(std::memory_order_seq_cst);
      while (least < wanted && !wanted_.compare_exchange_weak(wanted, least)) {
      }
      // (2) wanted_ is written before the threads' progress is read: either we see it, or its thread sees what we want.
      if (look(least)) break;
      futex_wait(bell_, rung);
    }
    // What we wanted may stand there still. Nobody will pass it any more, and it would hide what others want.
    if (wanted_.load(std::memory_order_seq_cst) <= least) wake_all();
  }

  void reset() {
    low_.store(0, std::memory_order_relaxed);
    ended_.store(0, std::memory_order_relaxed);
    wanted_.store(ended, std::memory_order_relaxed);
  }

 private:
  static constexpr int looks = 8;

  void wake_all() {
    wanted_.store(ended, std::memory_order_seq_cst);
    bell_.fetch_add(1, std::memory_order_seq_cst);  // after wanted_: who has wanted something in between does not sleep
    futex_wake_all(bell_);
  }

  bool passed_soon(std::uint64_t least) {
    for (int i = 0; i < looks; ++i) {
      if (low_.load(std::memory_order_relaxed) >= least || look(least)) return true;
      for (int k = 0; k < spins / looks; ++k) relax();
    }
    return false;
  }

  bool look(std::uint64_t least) {
    std::size_t i = ended_.load(std::memory_order_relaxed);
    while (i < count_ && all_[i].sequence.load(std::memory_order_seq_cst) == ended) ++i;
    ended_.store(i, std::memory_order_relaxed);
    std::uint64_t low = ended;
    for (; i < count_ && all_[i].first < low; ++i) {
      const std::uint64_t sequence = all_[i].sequence.load(std::memory_order_seq_cst);
      if (sequence < low) low = sequence;
    }
    // A bound that was true once is true for ever; an older one of another thread does no harm.
    low_.store(low, std::memory_order_relaxed);
    return low >= least;
  }

  Progress* all_;
  std::size_t count_;
  alignas(128) std::atomic<std::uint64_t> low_{0};         // nobody is behind that
  std::atomic<std::size_t> ended_{0};                      // all threads before this one have ended
  alignas(128) std::atomic<std::uint64_t> wanted_{ended};  // the least that a sleeper waits for
  std::atomic<std::uint32_t> bell_{0};
};

}  // namespace bench::replay
