// SPDX-License-Identifier: MIT OR Apache-2.0
// The replaceable operators of C++. The object may not depend on libstdc++, so what only exists with it (the new handler, the
// exception) is looked up when it is needed: whoever calls a throwing operator new has it loaded.
#if !defined(TERRACE_SANITIZED)

#include "base/report.h"
#include "shim/entry.h"

#include <dlfcn.h>
#include <new>

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but the names

namespace {

// The one file that is compiled with exceptions: a new handler may throw, and the nothrow forms must turn that into null. What
// the compiler refers to for it belongs to the C++ runtime, so the references are weak: a process without it has nobody to
// throw.
__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak __cxa_call_terminate\n"
    ".weak _ZSt9terminatev\n"
    ".weak _Unwind_Resume\n");

using Handler = void (*)();

void* find(const char* name) noexcept {
  if (void* const f = dlsym(RTLD_DEFAULT, name)) return f;
  // Loaded with RTLD_LOCAL, by a plug-in: ask for the library itself, without loading it.
  for (const char* library : {"libstdc++.so.6", "libc++.so.1"}) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    if (void* const f = dlsym(handle, name)) return f;
  }
  return nullptr;
}

Handler new_handler() noexcept {
  auto* const get = reinterpret_cast<Handler (*)()>(find("_ZSt15get_new_handlerv"));
  return get != nullptr ? get() : nullptr;
}

// [new.delete.single]: call the handler and try again, for as long as there is one. It may throw.
template <class Try>
__attribute__((cold, noinline)) void* again(Try attempt) {
  for (Handler handler = new_handler(); handler != nullptr; handler = new_handler()) {
    handler();
    if (void* const p = attempt()) return p;
  }
  return nullptr;
}

__attribute__((cold, noinline)) void throw_bad_alloc() {
  if (auto* const raise = reinterpret_cast<Handler>(find("_ZSt17__throw_bad_allocv"))) raise();
  report_internal("operator new found no memory and no C++ runtime to say so");
}

void* allocate_or_throw(std::size_t size) {
  if (void* const p = shim::allocate(size)) [[likely]]
    return p;
  if (void* const p = again([=] { return shim::allocate(size); })) return p;
  throw_bad_alloc();
  return nullptr;
}

void* allocate_or_throw(std::size_t size, std::align_val_t align) {
  const auto attempt = [=] { return shim::aligned(static_cast<std::size_t>(align), size); };
  if (void* const p = attempt()) return p;
  if (void* const p = again(attempt)) return p;
  throw_bad_alloc();
  return nullptr;
}

template <class Try>
__attribute__((cold, noinline)) void* again_or_null(Try attempt) {
  try {
    return again(attempt);
  } catch (...) {
    return nullptr;
  }
}

void* allocate_or_null(std::size_t size) {
  if (void* const p = shim::allocate(size)) [[likely]]
    return p;
  return again_or_null([=] { return shim::allocate(size); });
}

void* allocate_or_null(std::size_t size, std::align_val_t align) {
  const auto attempt = [=] { return shim::aligned(static_cast<std::size_t>(align), size); };
  if (void* const p = attempt()) return p;
  return again_or_null(attempt);
}

}  // namespace

// Defined without std::nothrow itself, which lives in libstdc++.
TERRACE_EXPORT void* operator new(std::size_t n) { return allocate_or_throw(n); }
TERRACE_EXPORT void* operator new[](std::size_t n) { return allocate_or_throw(n); }
TERRACE_EXPORT void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate_or_null(n); }
TERRACE_EXPORT void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate_or_null(n); }
TERRACE_EXPORT void* operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, a); }
TERRACE_EXPORT void* operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, a); }
TERRACE_EXPORT void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, a);
}
TERRACE_EXPORT void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate_or_null(n, a);
}

namespace {

TERRACE_INLINE void free_sized(void* p, std::size_t n) noexcept {
  heap::free_or(p, [=]() noexcept { heap::delete_sized_slow(p, n); });
}
TERRACE_INLINE void free_aligned(void* p, std::align_val_t a) noexcept {
  heap::free_or(p, [=]() noexcept { heap::delete_aligned_slow(p, static_cast<std::size_t>(a)); });
}
TERRACE_INLINE void free_aligned_sized(void* p, std::size_t n, std::align_val_t a) noexcept {
  heap::free_or(p, [=]() noexcept { heap::delete_aligned_sized_slow(p, n, static_cast<std::size_t>(a)); });
}

}  // namespace

TERRACE_EXPORT void operator delete(void* p) noexcept { heap::free(p); }
TERRACE_EXPORT void operator delete[](void* p) noexcept { heap::free(p); }
TERRACE_EXPORT void operator delete(void* p, const std::nothrow_t&) noexcept { heap::free(p); }
TERRACE_EXPORT void operator delete[](void* p, const std::nothrow_t&) noexcept { heap::free(p); }
TERRACE_EXPORT void operator delete(void* p, std::size_t n) noexcept { free_sized(p, n); }
TERRACE_EXPORT void operator delete[](void* p, std::size_t n) noexcept { free_sized(p, n); }
TERRACE_EXPORT void operator delete(void* p, std::align_val_t a) noexcept { free_aligned(p, a); }
TERRACE_EXPORT void operator delete[](void* p, std::align_val_t a) noexcept { free_aligned(p, a); }
TERRACE_EXPORT void operator delete(void* p, std::size_t n, std::align_val_t a) noexcept { free_aligned_sized(p, n, a); }
TERRACE_EXPORT void operator delete[](void* p, std::size_t n, std::align_val_t a) noexcept { free_aligned_sized(p, n, a); }
TERRACE_EXPORT void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) noexcept { free_aligned(p, a); }
TERRACE_EXPORT void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) noexcept { free_aligned(p, a); }

#endif
