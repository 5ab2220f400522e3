// SPDX-License-Identifier: MIT OR Apache-2.0
// What caches do now and then: programs are asked to give memory back, and objects that nobody has wanted for a while are
// destructed. Both call a program's functions, which may take its locks: so in a process of several threads a thread of its own
// does it, which ends afterwards, and none of the program's waits for it.
#pragma once

#include <cstdint>

namespace terrace::umem {

inline constexpr std::uint64_t usual_reap_interval_ms = 10'000;

/// As umem_reap().
void reap() noexcept;
/// Now and then, by slow paths: whether an update is due; then it is begun.
void update_if_due() noexcept;
void set_reap_interval(std::uint64_t milliseconds) noexcept;
void update_after_fork_in_child() noexcept;

}  // namespace terrace::umem
