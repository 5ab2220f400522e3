// SPDX-License-Identifier: MIT OR Apache-2.0
// A block with its stamp: content that depends on who allocated it, where it lies and how long it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stress {

struct Block {
  void* start = nullptr;
  std::size_t size = 0;     // asked for
  std::size_t usable = 0;   // what malloc_usable_size() said
  std::uint64_t owner = 0;  // the thread that allocated it
};

enum class How : unsigned { malloc, calloc, aligned_alloc, posix_memalign };

/// From now on requests may fail with ENOMEM: memory limits change while threads run. To be called before there are threads.
void allow_failures();

/// Allocates, checks what the allocator promises, enters the block in the table of live ranges and stamps it. `start` is null
/// when there was no memory and that is allowed.
Block allocate(How how, std::size_t size, std::size_t alignment, std::uint64_t owner);
/// Compares the content with the stamp; `doing` is what the message calls the occasion.
void verify(const Block& block, const char* doing);
/// Verifies, takes the block out of the table and frees it. Nothing if `start` is null.
void release(Block& block);
/// realloc: what both sizes have in common must be kept; if there is no memory, everything.
void resize(Block& block, std::size_t size, std::uint64_t owner);

}  // namespace stress
