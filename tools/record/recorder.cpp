// SPDX-License-Identifier: MIT OR Apache-2.0
// The object to preload: malloc and its relatives, which call the real ones and record it.
//
// Order: an allocation takes its number after the call, a release before it (trace.h says what follows from that).
#include "real.h"
#include "sink.h"

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using terrace::record::bootstrap;
using terrace::record::bootstrap_bytes_from;
using terrace::record::is_bootstrap;
using terrace::record::Real;
using terrace::record::real;
using terrace::record::Scope;
using terrace::trace::Event;
using terrace::trace::Kind;
namespace record = terrace::record;

#define RECORD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::uint64_t address_of(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }

bool recorded(const Scope& scope) { return scope.outermost() && record::recording(); }

void* allocated(const Scope& scope, Kind kind, void* block, std::size_t size, std::size_t alignment = 1) {
  if (block == nullptr || !recorded(scope)) return block;
  Event event;
  event.kind = kind;
  event.sequence = record::next_sequence();
  event.allocated = address_of(block);
  event.size = size;
  event.alignment_log2 = static_cast<std::uint8_t>(std::bit_width(alignment) - 1);
  record::write(event);
  return block;
}

void released(const void* block, std::uint64_t sequence) {
  Event event;
  event.sequence = sequence;
  event.released = address_of(block);
  record::write(event);
}

void reallocated(const void* old, void* block, std::size_t size, std::uint64_t begin) {
  if (block == nullptr) {
    if (size == 0) released(old, begin);
    return;
  }
  Event event;
  event.kind = Kind::realloc;
  event.sequence = begin;
  event.end_sequence = record::next_sequence();
  event.released = address_of(old);
  event.allocated = address_of(block);
  event.size = size;
  record::write(event);
}

void* out_of_bootstrap(void* old, std::size_t size) {
  void* const block = malloc(size);
  const std::size_t most = bootstrap_bytes_from(old);
  if (block != nullptr) std::memcpy(block, old, size < most ? size : most);
  return block;
}

}  // namespace

RECORD_EXPORT void* malloc(std::size_t size) {
  const Real* const functions = real();
  if (functions == nullptr) return bootstrap(size);
  const Scope scope;
  return allocated(scope, Kind::malloc, functions->malloc(size), size);
}

RECORD_EXPORT void* calloc(std::size_t count, std::size_t each) {
  const Real* const functions = real();
  std::size_t size = 0;
  const bool fits = !__builtin_mul_overflow(count, each, &size);
  if (functions == nullptr) return fits ? bootstrap(size) : nullptr;
  const Scope scope;
  return allocated(scope, Kind::calloc, functions->calloc(count, each), size);
}

RECORD_EXPORT void free(void* block) {
  const Real* const functions = real();
  if (block == nullptr || is_bootstrap(block) || functions == nullptr) return;
  const Scope scope;
  if (recorded(scope)) released(block, record::next_sequence());
  functions->free(block);
}

RECORD_EXPORT void* realloc(void* old, std::size_t size) {
  const Real* const functions = real();
  if (functions == nullptr || is_bootstrap(old)) return functions == nullptr ? bootstrap(size) : out_of_bootstrap(old, size);
  const Scope scope;
  if (old == nullptr) return allocated(scope, Kind::malloc, functions->realloc(old, size), size);
  const bool is_recorded = recorded(scope);
  const std::uint64_t begin = is_recorded ? record::next_sequence() : 0;
  void* const block = functions->realloc(old, size);
  if (is_recorded) reallocated(old, block, size, begin);
  return block;
}

RECORD_EXPORT void* reallocarray(void* old, std::size_t count, std::size_t each) {
  std::size_t size = 0;
  if (!__builtin_mul_overflow(count, each, &size)) return realloc(old, size);
  errno = ENOMEM;
  return nullptr;
}

RECORD_EXPORT void* memalign(std::size_t alignment, std::size_t size) {
  const Real* const functions = real();
  if (functions == nullptr) return nullptr;
  const Scope scope;
  return allocated(scope, Kind::aligned, functions->memalign(alignment, size), size, alignment);
}

RECORD_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) {
  const Real* const functions = real();
  if (functions == nullptr) return nullptr;
  const Scope scope;
  return allocated(scope, Kind::aligned, functions->aligned_alloc(alignment, size), size, alignment);
}

RECORD_EXPORT int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  const Real* const functions = real();
  if (functions == nullptr) return ENOMEM;
  const Scope scope;
  const int error = functions->posix_memalign(result, alignment, size);
  if (error == 0) allocated(scope, Kind::aligned, *result, size, alignment);
  return error;
}

RECORD_EXPORT void* valloc(std::size_t size) { return memalign(static_cast<std::size_t>(getpagesize()), size); }

RECORD_EXPORT void* pvalloc(std::size_t size) {
  const auto page = static_cast<std::size_t>(getpagesize());
  return size > SIZE_MAX - page ? nullptr : memalign(page, (size + page - 1) / page * page);
}

// C23's, where libc has them: a program that was linked against them must not pass by.
RECORD_EXPORT void free_sized(void* block, std::size_t) { free(block); }
RECORD_EXPORT void free_aligned_sized(void* block, std::size_t, std::size_t) { free(block); }
