// SPDX-License-Identifier: MIT OR Apache-2.0
// Faults of objects, their messages, and their record for core files.
#pragma once

#include "umem/debug.h"

namespace terrace::umem {

enum class Fault : std::uint8_t {
  none,
  modified,
  redzone,
  duplicate_free,
  bad_address,
  bad_tag,
  bad_record,
  wrong_cache,
  bad_size,
  bad_base,
  bad_block,  // of malloc: its tag
  panic,
  wrong_function  // umem_free() of memory of umem_alloc_align(), or the reverse
};

struct Details {
  const std::uint64_t* word = nullptr;  // modified
  std::uint64_t found = 0, wanted = 0;  // bad_tag: states; bad_size: sizes
  const Cache* other = nullptr;         // wrong_cache
  const void* base = nullptr;           // bad_base
  bool aligned = false;                 // wrong_function: that umem_free() got it
};

/// Reports the fault, then ends the process unless `noabort`. `cache`: null for memory of no cache.
void report(Fault fault, const Cache* cache, const void* object, const Record* record, const Details& details = {}) noexcept;

/// The last reported fault.
struct AbortInfo {
  int error;                // Fault
  const void* buffer;       // as the program names it: malloc's block, where it is known that there is one
  const void* real_buffer;  // the object that it is, or lies in; null: none
  const Cache* cache;       // as the program named it
  const Cache* real_cache;  // whose object it is; null: nobody's
  const void* slab;         // or null
  const Record* bufctl;     // or null
  std::uint64_t timestamp;  // CLOCK_MONOTONIC, nanoseconds; 0: nothing was reported
};

/// For what has no cache.
void keep_for_core(Fault fault, const void* buffer) noexcept;

}  // namespace terrace::umem

extern "C" {
extern terrace::umem::AbortInfo umem_abort_info;
}
