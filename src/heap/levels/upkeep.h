// SPDX-License-Identifier: MIT OR Apache-2.0
// What the levels ask of the room above them, which decides what is given back, and when (heap/upkeep).
#pragma once

#include <cstddef>

namespace terrace::heap {

class Maintenance;

namespace upkeep {

/// Every path that may have raised what is free, or lowered the bound on it, ends with this, and holds no lock.
void keep_bound(Maintenance& m) noexcept;
/// What is due, if anything is.
void tick(Maintenance& m) noexcept;
/// Sets the budgets of the levels, by what is in use now.
void update_limits(Maintenance& m) noexcept;
/// Memory is short: whether another try makes sense.
bool make_room(Maintenance& m, std::size_t bytes) noexcept;
/// Whether a slot may keep a large block of so many bytes from now on.
bool may_keep(Maintenance& m, std::size_t bytes) noexcept;

}  // namespace upkeep
}  // namespace terrace::heap
