// SPDX-License-Identifier: MIT OR Apache-2.0
// UMEM_DEBUG: checks on the objects of a cache, and the records of them.
//
//   object, rounded up to 8 bytes   | tag: redzone, record, record ^ state |
//
// While an object is free, with `guards`, it holds 0xdeadbeef and is compared with that when it is allocated or leaves its
// magazine; when it is allocated it is filled with 0xbaddcafe. The redzone holds 0xfeedface, and is compared when the object is
// freed. The record of an object is made when it leaves its slab; it says where it is and, with `audit`, what happened last.
#pragma once

#include "umem/log.h"

namespace terrace::umem {

/// What happened last to an object, as an entry of a log has it. A debugger reads it. Nothing, until it has happened and where
/// `audit` is off; object and cache are there all the same.
struct Record {
  Event event;
  const void* stack[];  // event.depth
};
/// Behind an object.
struct Tag {
  std::uint64_t redzone;
  Record* record;
  std::uint64_t state;
};

inline constexpr std::uint64_t freed_pattern = 0xdeadbeefdeadbeef, fresh_pattern = 0xbaddcafebaddcafe;
inline constexpr std::uint64_t redzone_pattern = 0xfeedfacefeedface;
/// What a tag's state is, xor the address of its record.
inline constexpr std::uint64_t allocated_state = 0xa110c8eda110c8ed, free_state = 0xf4eef4eef4eef4ee;
/// Of caches that serve umem_alloc(): the redzone's upper half is size * size_factor + 1.
inline constexpr std::uint32_t size_factor = 251;

/// Bytes of an object with its tag.
constexpr std::size_t tag_offset(std::size_t size) noexcept { return round_up(size, sizeof(std::uint64_t)); }
constexpr std::size_t size_with_tag(std::size_t size) noexcept { return tag_offset(size) + sizeof(Tag); }

inline bool is_debugged(const Cache& c) noexcept { return (c.debug & debug_of_objects) != 0; }
/// Of memory for an object.
inline std::size_t bytes_of(const Cache& c) noexcept { return is_debugged(c) ? size_with_tag(c.size) : c.size; }

/// For make_objects(): of an object that goes back to its slab.
void forget_object(void* cache, void* object) noexcept;

// As allocate_slow() and free_slow() of a cache whose `debug` has any of debug_of_objects.
void* debug_allocate(Cache& cache) noexcept;
void debug_free(Cache& cache, void* object) noexcept;

// Of caches that serve umem_alloc(): an object of which `size` bytes were asked for, at most the cache's. What is behind them
// is guarded as well.
void mark_size(const Cache& cache, void* object, std::size_t size) noexcept;
void check_size(const Cache& cache, void* object, std::size_t size) noexcept;

/// Records that malloc's block in the object, just allocated, begins at p, the address that the program has. `cache`: null for
/// memory in pages of its own.
void note_block(const Cache* cache, void* object, const void* p) noexcept;
/// Null: unknown.
const void* block_in(const Record& record) noexcept;

/// Fault injection: whether this allocation is to fail.
bool is_to_fail() noexcept;

}  // namespace terrace::umem
