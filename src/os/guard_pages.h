// SPDX-License-Identifier: MIT OR Apache-2.0
// Pages that nobody may touch.
#pragma once

#include <cstddef>

namespace terrace::os {

/// Takes all access from a range of pages; what they hold stays. False: the system refuses (too many maps).
bool deny_access(void* address, std::size_t bytes) noexcept;
/// The same for what becomes of a range of reserve() when its memory goes back: nobody may touch it, and it holds nothing.
bool make_inaccessible(void* address, std::size_t bytes) noexcept;
/// Guards in a committed range, which stays one mapping, and what they hold is gone; or none, and the pages are zeroed memory
/// again. False: the system knows no such guards (Linux before 6.13), or has no memory.
bool install_guards(void* address, std::size_t bytes) noexcept;
bool remove_guards(void* address, std::size_t bytes) noexcept;
/// Readable and writable zeroed memory between two pages that nobody may touch; null when there is none.
void* map_between_guards(std::size_t bytes) noexcept;

}  // namespace terrace::os
