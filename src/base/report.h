// SPDX-License-Identifier: MIT OR Apache-2.0
// What a broken client is told. Each text exists once; tests match them. The writer and the end of the process are given by
// the layer that has system calls (os/report.cpp).
#pragma once

#include <cstddef>

namespace terrace {

/// "terrace: <function>(): double free of 0x..." and the end.
[[noreturn]] void report_double_free(const char* function, const void* block) noexcept;
/// "terrace: <function>(): invalid pointer 0x..."
[[noreturn]] void report_invalid_pointer(const char* function, const void* pointer) noexcept;
/// "terrace: <function>(): block 0x... was written after it was freed"
[[noreturn]] void report_write_after_free(const char* function, const void* block) noexcept;

// With TERRACE_CHECK, which knows every block (docs/guide/misuse.md):
struct ReportedBlock {
  const void* start;
  std::size_t size;
};
/// "terrace: <function>(): invalid pointer 0x..., 48 bytes into the block of 100 bytes at 0x..."
[[noreturn]] void report_interior_pointer(const char* function, const void* pointer, ReportedBlock block) noexcept;
/// "terrace: <function>(): block 0x... of 100 bytes was written beyond its end", or "before its start"
[[noreturn]] void report_out_of_bounds(const char* function, ReportedBlock block, bool beyond) noexcept;
/// "terrace: <function>(): block 0x... has 100 bytes, not 50"
[[noreturn]] void report_wrong_size(const char* function, ReportedBlock block, std::size_t claimed) noexcept;
/// "terrace: <function>(): block 0x... has alignment 16, not 64"
[[noreturn]] void report_wrong_alignment(const char* function, const void* block, std::size_t has,
                                         std::size_t claimed) noexcept;
// Of arenas (sys/vmem.h), which have names:
struct ReportedPiece {
  const char* arena;
  const void* address;
  std::size_t size;
};
/// "terrace: <function>(): bad free of 0x..., 4096 bytes, in arena 'name'"
[[noreturn]] void report_bad_arena_free(const char* function, ReportedPiece piece) noexcept;
/// "terrace: <function>(): wrong size 4096 of 0x..., which has 8192 bytes, in arena 'name'"
[[noreturn]] void report_wrong_arena_size(const char* function, ReportedPiece piece, std::size_t has) noexcept;
/// "terrace: <function>(): the source of arena 'name' has returned 0x..., 4096 bytes: <what is wrong with that>"
[[noreturn]] void report_bad_import(const char* function, ReportedPiece piece, const char* wrong) noexcept;
/// "terrace: <function>(): arena 'name' can not give 4096 bytes": with VM_PANIC.
[[noreturn]] void report_arena_failure(const char* function, const char* arena, std::size_t size) noexcept;
/// "terrace: <function>(): arena 'name' is the source of arena 'other'"
[[noreturn]] void report_arena_in_use(const char* function, const char* arena, const char* importer) noexcept;
/// "terrace: <function>(): 4096 bytes of arena 'name' were not freed", and goes on.
void warn_of_leaked_pieces(const char* function, const char* arena, std::size_t bytes) noexcept;

/// What is written after the line of any report of a block above: all that is known of the pointer. Set once, before it may be
/// needed.
void set_report_details(void (*details)(const void* pointer) noexcept) noexcept;

/// "terrace: internal error: <what>": a bug of ours.
[[noreturn]] void report_internal(const char* what) noexcept;
/// "terrace: <what> <value>: <consequence>", and goes on.
void warn(const char* what, const char* value, const char* consequence) noexcept;

}  // namespace terrace
