// SPDX-License-Identifier: MIT OR Apache-2.0
// The replaceable operators of C++. A program may replace some of them: the standard defines each of the others by one that it
// may have replaced ([new.delete]). So they look whether that one is ours before they take the direct way, and all are weak
// definitions, beside which a program that links the archive may define its own.
#if !defined(TERRACE_SANITIZED)

#include "shim/entry.h"
#include "shim/no_memory.h"

#include <cstdlib>
#include <new>

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but the names
using std::align_val_t;
using std::nothrow_t;
using std::size_t;

namespace {

// Who links the archive and uses an operator gets malloc with it: one heap.
[[gnu::used]] void* (*const malloc_too)(size_t) = &std::malloc;

// Our definitions by names that nobody else can define.
void* own_new(size_t) __attribute__((malloc, alloc_size(1), alias("_Znwm")));
void* own_new_array(size_t) __attribute__((malloc, alloc_size(1), alias("_Znam")));
void* own_new_aligned(size_t, align_val_t) __attribute__((malloc, alloc_size(1), alias("_ZnwmSt11align_val_t")));
void* own_new_array_aligned(size_t, align_val_t) __attribute__((malloc, alloc_size(1), alias("_ZnamSt11align_val_t")));
void own_delete(void*) noexcept __attribute__((alias("_ZdlPv")));
void own_delete_array(void*) noexcept __attribute__((alias("_ZdaPv")));
void own_delete_aligned(void*, align_val_t) noexcept __attribute__((alias("_ZdlPvSt11align_val_t")));
void own_delete_array_aligned(void*, align_val_t) noexcept __attribute__((alias("_ZdaPvSt11align_val_t")));

// Whether the process uses ours; the linker is told to leave these references to the process (replaceable.list). The forms for
// arrays are ours only if those that they stand for are.
template <class F>
TERRACE_INLINE bool same(F* used, F* own) noexcept {
  return used == own;
}
TERRACE_INLINE bool new_is_ours() noexcept { return same<void*(size_t)>(&::operator new, own_new); }
TERRACE_INLINE bool new_array_is_ours() noexcept {
  return same<void*(size_t)>(&::operator new[], own_new_array) && new_is_ours();
}
TERRACE_INLINE bool new_aligned_is_ours() noexcept {
  return same<void*(size_t, align_val_t)>(&::operator new, own_new_aligned);
}
TERRACE_INLINE bool new_array_aligned_is_ours() noexcept {
  return same<void*(size_t, align_val_t)>(&::operator new[], own_new_array_aligned) && new_aligned_is_ours();
}
TERRACE_INLINE bool delete_is_ours() noexcept { return same<void(void*) noexcept>(&::operator delete, own_delete); }
TERRACE_INLINE bool delete_array_is_ours() noexcept {
  return same<void(void*) noexcept>(&::operator delete[], own_delete_array) && delete_is_ours();
}
TERRACE_INLINE bool delete_aligned_is_ours() noexcept {
  return same<void(void*, align_val_t) noexcept>(&::operator delete, own_delete_aligned);
}
TERRACE_INLINE bool delete_array_aligned_is_ours() noexcept {
  return same<void(void*, align_val_t) noexcept>(&::operator delete[], own_delete_array_aligned) && delete_aligned_is_ours();
}

void* plain(size_t /*alignment*/, size_t n) { return shim::allocate(n); }
void* aligned(size_t a, size_t n) { return shim::aligned(a, n); }

// GCC 14 wants it for allocate_or_null_slow(). Weak, as in no_memory.cpp.
__asm__(".weak __gxx_personality_v0");

// A frame of its own, so that the heap profiler's stacks have the caller. Not by profile::Entered, whose destructor would have
// to run when something is thrown, and not noexcept: either takes the C++ runtime.
TERRACE_INLINE void keep_frame() { __asm__ volatile("" : : "r"(__builtin_frame_address(0))); }

TERRACE_COLD void* allocate_or_throw_slow(size_t n) {
  keep_frame();
  void* const p = heap::allocate_slow(n);
  return p != nullptr ? p : shim::retry_or_throw(plain, 0, n);
}
TERRACE_INLINE void* allocate_or_throw(size_t n) {
  return heap::allocate_or(n, [=] { return allocate_or_throw_slow(n); });
}
void* allocate_or_throw(size_t n, align_val_t align) {
  const auto a = static_cast<size_t>(align);
  if (void* const p = shim::aligned(a, n)) return p;
  return shim::retry_or_throw(aligned, a, n);
}
TERRACE_COLD void* allocate_or_null_slow(size_t n) noexcept {
  keep_frame();
  void* const p = heap::allocate_slow(n);
  return p != nullptr ? p : shim::or_null([](size_t, size_t m) { return shim::retry(plain, 0, m); }, 0, n);
}
TERRACE_INLINE void* allocate_or_null(size_t n) noexcept {
  return heap::allocate_or(n, [=]() noexcept { return allocate_or_null_slow(n); });
}
void* allocate_or_null(size_t n, align_val_t align) noexcept {
  const auto a = static_cast<size_t>(align);
  if (void* const p = shim::aligned(a, n)) return p;
  return shim::or_null([](size_t b, size_t m) { return shim::retry(aligned, b, m); }, a, n);
}

}  // namespace

// Defined without std::nothrow itself, which lives in libstdc++.
TERRACE_REPLACEABLE void* operator new(size_t n) { return allocate_or_throw(n); }
TERRACE_REPLACEABLE void* operator new[](size_t n) { return new_is_ours() ? allocate_or_throw(n) : ::operator new(n); }
TERRACE_REPLACEABLE void* operator new(size_t n, const nothrow_t&) noexcept {
  if (new_is_ours()) [[likely]]
    return allocate_or_null(n);
  return shim::or_null([](size_t, size_t m) { return ::operator new(m); }, 0, n);
}
TERRACE_REPLACEABLE void* operator new[](size_t n, const nothrow_t&) noexcept {
  if (new_array_is_ours()) [[likely]]
    return allocate_or_null(n);
  return shim::or_null([](size_t, size_t m) { return ::operator new[](m); }, 0, n);
}
TERRACE_REPLACEABLE void* operator new(size_t n, align_val_t a) { return allocate_or_throw(n, a); }
TERRACE_REPLACEABLE void* operator new[](size_t n, align_val_t a) {
  return new_aligned_is_ours() ? allocate_or_throw(n, a) : ::operator new(n, a);
}
TERRACE_REPLACEABLE void* operator new(size_t n, align_val_t a, const nothrow_t&) noexcept {
  if (new_aligned_is_ours()) return allocate_or_null(n, a);
  return shim::or_null([](size_t b, size_t m) { return ::operator new (m, align_val_t{b}); }, static_cast<size_t>(a), n);
}
TERRACE_REPLACEABLE void* operator new[](size_t n, align_val_t a, const nothrow_t&) noexcept {
  if (new_array_aligned_is_ours()) return allocate_or_null(n, a);
  return shim::or_null([](size_t b, size_t m) { return ::operator new[](m, align_val_t{b}); }, static_cast<size_t>(a), n);
}

namespace {

TERRACE_INLINE void free_sized(void* p, size_t n) noexcept {
  heap::free_or(p, [=]() noexcept { heap::delete_sized_slow(p, n); });
}
TERRACE_INLINE void free_aligned(void* p, align_val_t a) noexcept {
  heap::free_or(p, [=]() noexcept { heap::delete_aligned_slow(p, static_cast<size_t>(a)); });
}
TERRACE_INLINE void free_aligned_sized(void* p, size_t n, align_val_t a) noexcept {
  heap::free_or(p, [=]() noexcept { heap::delete_aligned_sized_slow(p, n, static_cast<size_t>(a)); });
}

}  // namespace

TERRACE_REPLACEABLE void operator delete(void* p) noexcept { heap::free(p); }
TERRACE_REPLACEABLE void operator delete[](void* p) noexcept { delete_is_ours() ? heap::free(p) : ::operator delete(p); }
TERRACE_REPLACEABLE void operator delete(void* p, const nothrow_t&) noexcept {
  delete_is_ours() ? heap::free(p) : ::operator delete(p);
}
TERRACE_REPLACEABLE void operator delete[](void* p, const nothrow_t&) noexcept {
  delete_array_is_ours() ? heap::free(p) : ::operator delete[](p);
}
TERRACE_REPLACEABLE void operator delete(void* p, size_t n) noexcept {
  delete_is_ours() ? free_sized(p, n) : ::operator delete(p);
}
TERRACE_REPLACEABLE void operator delete[](void* p, size_t n) noexcept {
  delete_array_is_ours() ? free_sized(p, n) : ::operator delete[](p);
}
TERRACE_REPLACEABLE void operator delete(void* p, align_val_t a) noexcept { free_aligned(p, a); }
TERRACE_REPLACEABLE void operator delete[](void* p, align_val_t a) noexcept {
  delete_aligned_is_ours() ? free_aligned(p, a) : ::operator delete(p, a);
}
TERRACE_REPLACEABLE void operator delete(void* p, size_t n, align_val_t a) noexcept {
  delete_aligned_is_ours() ? free_aligned_sized(p, n, a) : ::operator delete(p, a);
}
TERRACE_REPLACEABLE void operator delete[](void* p, size_t n, align_val_t a) noexcept {
  delete_array_aligned_is_ours() ? free_aligned_sized(p, n, a) : ::operator delete[](p, a);
}
TERRACE_REPLACEABLE void operator delete(void* p, align_val_t a, const nothrow_t&) noexcept {
  delete_aligned_is_ours() ? free_aligned(p, a) : ::operator delete(p, a);
}
TERRACE_REPLACEABLE void operator delete[](void* p, align_val_t a, const nothrow_t&) noexcept {
  delete_array_aligned_is_ours() ? free_aligned(p, a) : ::operator delete[](p, a);
}

#endif
