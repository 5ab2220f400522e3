// SPDX-License-Identifier: MIT OR Apache-2.0
// The allocator under test, whichever names it has. Without a sanitizer the tests use libc's names, so the same program tests
// glibc (plain) or Terrace (preloaded). A sanitizer owns libc's names; there the tests are linked with Terrace's own names.
//
// Every pointer passes through an empty asm: the compiler may know malloc, and must not reason about what it returns.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>

#if defined(TERRACE_TESTS_PREFIXED)
#include "terrace/malloc.h"
#include "terrace/stats.h"
#define TERRACE_UNDER_TEST(name) ::terrace_##name
#else
#define TERRACE_UNDER_TEST(name) ::name
#endif

namespace api {

template <class T>
inline T opaque(T value) noexcept {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

inline void* malloc(std::size_t size) { return opaque(TERRACE_UNDER_TEST(malloc)(opaque(size))); }
inline void free(void* p) { TERRACE_UNDER_TEST(free)(opaque(p)); }
inline void* calloc(std::size_t count, std::size_t size) {
  return opaque(TERRACE_UNDER_TEST(calloc)(opaque(count), opaque(size)));
}
inline void* realloc(void* p, std::size_t size) { return opaque(TERRACE_UNDER_TEST(realloc)(opaque(p), opaque(size))); }
inline void* reallocarray(void* p, std::size_t count, std::size_t size) {
  return opaque(TERRACE_UNDER_TEST(reallocarray)(opaque(p), opaque(count), opaque(size)));
}
inline void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return opaque(TERRACE_UNDER_TEST(aligned_alloc)(opaque(alignment), opaque(size)));
}
inline int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  return TERRACE_UNDER_TEST(posix_memalign)(opaque(out), opaque(alignment), opaque(size));
}
inline std::size_t malloc_usable_size(void* p) { return TERRACE_UNDER_TEST(malloc_usable_size)(opaque(p)); }
inline int malloc_trim(std::size_t pad) { return TERRACE_UNDER_TEST(malloc_trim)(pad); }

// glibc 2.36 has neither; null then.
using FreeSized = void (*)(void*, std::size_t);
using FreeAlignedSized = void (*)(void*, std::size_t, std::size_t);
#if defined(TERRACE_TESTS_PREFIXED)
inline FreeSized free_sized() { return ::terrace_free_sized; }
inline FreeAlignedSized free_aligned_sized() { return ::terrace_free_aligned_sized; }
inline const char* rung() { return ::terrace_rung(); }
#else
inline FreeSized free_sized() { return reinterpret_cast<FreeSized>(dlsym(RTLD_DEFAULT, "free_sized")); }
inline FreeAlignedSized free_aligned_sized() {
  return reinterpret_cast<FreeAlignedSized>(dlsym(RTLD_DEFAULT, "free_aligned_sized"));
}
// Null: this is not Terrace.
inline const char* rung() {
  auto* const f = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "terrace_rung"));
  return f != nullptr ? f() : nullptr;
}
#endif

inline bool is_terrace() { return rung() != nullptr; }

inline bool is_aligned(const void* p, std::size_t alignment) { return reinterpret_cast<std::uintptr_t>(p) % alignment == 0; }

}  // namespace api

#undef TERRACE_UNDER_TEST
