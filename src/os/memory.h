// SPDX-License-Identifier: MIT OR Apache-2.0
// Address space: reserve, commit, give back. Nothing here sets errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::os {

/// The page size at run time: 4 to 64 KiB.
std::size_t page_size() noexcept;
inline constexpr std::size_t smallest_page = 4096;

/// Address space without memory (no access, not accounted). `hint` may be null. Null when there is none.
void* reserve(std::size_t bytes, void* hint) noexcept;

enum class Mapped : std::uint8_t {
  yes,
  occupied,  // something else is mapped in the range
  refused,   // over a limit (of memory, addresses, mappings), or there are no such addresses
  kept,      // by look_at() alone: it was free, and is reserved for the caller now, since the system does not unmap it
};
/// What mapping exactly there would come to; nothing is mapped, but where it can not be unmapped.
Mapped look_at(void* address, std::size_t bytes) noexcept;
/// Whether nothing is mapped in the range, told without mapping anything, so that no limit matters, however long it is. To
/// choose among places: also true where the system does not tell, and others may map there a moment later.
bool is_vacant(void* address, std::size_t bytes) noexcept;
/// Readable and writable zeroed memory exactly there.
Mapped map_at(void* address, std::size_t bytes) noexcept;
/// As map_at() for a range that continues the caller's mapping, which ends at `address`: also where the process has as many
/// mappings as it may have, since the mapping before is lengthened then.
Mapped map_behind(void* address, std::size_t bytes) noexcept;
/// Zeroes exactly there, which can be read and not be written: they take no memory and are not accounted as such.
Mapped map_zeroes(void* address, std::size_t bytes) noexcept;
/// Makes a reserved range readable and writable. False: over a limit; the range stays as it was.
bool commit(void* address, std::size_t bytes) noexcept;
/// Gives the memory back; the range stays committed and reads as zero. Touches no page of it. What is locked stays so, and has
/// pages again when it is touched. Where the system refuses or ignores the request (emulators, sandboxes), the range is mapped
/// anew. False where that does not work either: then the memory is still there, and its contents are undefined.
bool purge(void* address, std::size_t bytes) noexcept;
/// Whether a range that holds nothing yet is locked (mlockall with MCL_FUTURE): its pages are there, and count as locked.
bool is_locked(void* address, std::size_t bytes) noexcept;
/// Whether purge() has ever given back locked pages.
bool has_met_locked_pages() noexcept;
/// Gives the address space back, whole pages of it. False: the system refuses, and it stays as it is.
bool release(void* address, std::size_t bytes) noexcept;
/// Moves the pages of [from, from + bytes) to [to, to + room), which the caller owns; what is behind them there reads as zero.
/// Requires bytes < room. The ranges do not overlap.
/// True: all pages were moved; [from, from + bytes) has to be mapped anew before it is used again.
/// False: no page was moved and `from` is as it was; nothing is known of the target, which has to be mapped anew.
bool move_pages(void* from, std::size_t bytes, void* to, std::size_t room) noexcept;
/// Puts fresh zeroed memory over a range that the caller owns, mapped or not. Unlike after purge(), the range is one mapping
/// with its neighbours again. False: nothing is known of the range, which must not be used any more.
bool map_anew(void* address, std::size_t bytes) noexcept;
inline constexpr std::size_t usual_mappings = 65530;
/// How many mappings the system lets a process have (vm.max_map_count), or the usual number where that can not be read.
std::size_t most_mappings() noexcept;
/// Readable and writable anonymous memory, zeroed, whole pages; null when there is none. What the library keeps: see
/// metadata.h.
void* map(std::size_t bytes) noexcept;

}  // namespace terrace::os
