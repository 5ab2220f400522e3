// SPDX-License-Identifier: MIT OR Apache-2.0
// Periodic update of caches, also run before memory is refused: it asks programs to give memory back and destructs objects
// unused for a while. Both call functions of the program, which may take its locks. So in a process of several threads the
// update runs in a thread of its own, which ends afterwards, and no thread of the program waits for it. Only before memory is
// refused does the allocating thread call them itself: it waits anyway, and there may be no memory for another thread.
#pragma once

#include <cstdint>

namespace terrace::umem {

inline constexpr std::uint64_t usual_reap_interval_ms = 10'000;

/// As umem_reap().
void reap() noexcept;
/// Memory is short: this thread, without a lock, asks every cache to give some back; or it waits at most ten seconds for
/// another thread that does so, since that one may need a lock of the program that this one holds. True: another try makes
/// sense. False inside a function that it calls.
bool reclaim_now() noexcept;
/// attempt(), and once more after reclaim_now().
template <class Attempt>
void* with_reclaim(Attempt attempt) {
  void* const p = attempt();
  return p != nullptr || !reclaim_now() ? p : attempt();
}
/// Called by slow paths: begins an update if one is due.
void update_if_due() noexcept;
void set_reap_interval(std::uint64_t milliseconds) noexcept;
void update_after_fork_in_child() noexcept;

}  // namespace terrace::umem
