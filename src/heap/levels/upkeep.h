// SPDX-License-Identifier: MIT OR Apache-2.0
// Functions of heap/upkeep that the levels call: it decides what is given back, and when.
#pragma once

#include <cstddef>

namespace terrace::heap {

class Maintenance;

namespace upkeep {

/// Every path that may have raised free memory, or lowered its bound, calls this last, without a lock.
void keep_bound(Maintenance& m) noexcept;
/// Runs due maintenance, if any.
void tick(Maintenance& m) noexcept;
/// Sets the budgets of the levels, by what is in use now.
void update_limits(Maintenance& m) noexcept;
/// Memory is short: whether another try makes sense.
bool make_room(Maintenance& m, std::size_t bytes) noexcept;
/// Whether a slot may keep a large block of `bytes` from now on.
bool may_keep(Maintenance& m, std::size_t bytes) noexcept;

}  // namespace upkeep
}  // namespace terrace::heap
