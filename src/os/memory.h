// SPDX-License-Identifier: MIT OR Apache-2.0
// Address space: reserve, commit, give back. Nothing here sets errno.
#pragma once

#include <cstddef>

namespace terrace::os {

/// The page size at run time: 4 to 64 KiB.
std::size_t page_size() noexcept;

/// Address space without memory (no access, not accounted). `hint` may be null. Null when there is none.
void* reserve(std::size_t bytes, void* hint) noexcept;
/// As reserve(), but exactly there; null when something else is mapped in the range.
void* reserve_at(void* address, std::size_t bytes) noexcept;
/// Readable and writable memory exactly there; null when something else is mapped in the range, or over a limit.
void* map_at(void* address, std::size_t bytes) noexcept;
/// Makes a reserved range readable and writable. False: over a limit; the range stays as it was.
bool commit(void* address, std::size_t bytes) noexcept;
/// Gives the memory back; the range stays committed and reads as zero. False where that does not work (some emulators and
/// sandboxes ignore the request): then the contents are undefined and the memory is still there.
bool purge(void* address, std::size_t bytes) noexcept;
/// Gives the address space back.
void release(void* address, std::size_t bytes) noexcept;
/// Moves the pages of [from, from + bytes) to `to`, which is committed; `from` stays committed and reads as zero.
/// False: nothing was done.
bool move_pages(void* from, void* to, std::size_t bytes) noexcept;
/// Readable and writable anonymous memory, zeroed; null when there is none.
void* map(std::size_t bytes) noexcept;

}  // namespace terrace::os
