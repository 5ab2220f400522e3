// SPDX-License-Identifier: MIT OR Apache-2.0
// Pages that nobody may touch.
#pragma once

#include <cstddef>

namespace terrace::os {

/// Takes all access from a range of pages; what they hold stays. False: the system refuses (too many maps).
bool deny_access(void* address, std::size_t bytes) noexcept;
/// Readable and writable zeroed memory between two pages that nobody may touch; null when there is none.
void* map_between_guards(std::size_t bytes) noexcept;

}  // namespace terrace::os
