// SPDX-License-Identifier: MIT OR Apache-2.0
// What caches do now and then, and before memory is refused: programs are asked to give memory back, and objects that nobody
// has wanted for a while are destructed. Both call a program's functions, which may take its locks: so in a process of several
// threads a thread of its own does it, which ends afterwards, and none of the program's waits for it. Only where memory is
// refused does the thread that asked for it call them itself: it waits anyway, and there may be no memory for another thread.
#pragma once

#include <cstdint>

namespace terrace::umem {

inline constexpr std::uint64_t usual_reap_interval_ms = 10'000;

/// As umem_reap().
void reap() noexcept;
/// Memory is short: every cache is asked to give some back, by this thread, which holds no lock; or another thread that is at
/// it is waited for, at most a second, since it may need what this one holds. Whether another try makes sense; false inside of
/// what it calls.
bool reclaim_now() noexcept;
/// attempt(), and once more after reclaim_now().
template <class Attempt>
void* with_reclaim(Attempt attempt) {
  void* const p = attempt();
  return p != nullptr || !reclaim_now() ? p : attempt();
}
/// Now and then, by slow paths: whether an update is due; then it is begun.
void update_if_due() noexcept;
void set_reap_interval(std::uint64_t milliseconds) noexcept;
void update_after_fork_in_child() noexcept;

}  // namespace terrace::umem
