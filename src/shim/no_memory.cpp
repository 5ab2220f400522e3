// SPDX-License-Identifier: MIT OR Apache-2.0
// Compiled with exceptions: a new handler may throw, and the nothrow forms must turn that into null.
#if !defined(TERRACE_SANITIZED)

#include "shim/no_memory.h"

#include "base/attributes.h"
#include "base/report.h"

#include <dlfcn.h>
#include <exception>
#include <initializer_list>
#include <new>

namespace terrace::shim {

using Handler = std::new_handler;

#if !defined(TERRACE_LINKED_TO_RUNTIME)
// What is asked for below whether it is there.
TERRACE_EXPORT __attribute__((weak)) Handler linked_get_new_handler() noexcept __asm__("_ZSt15get_new_handlerv");
TERRACE_EXPORT __attribute__((weak)) void linked_throw() __asm__("__cxa_throw");
TERRACE_EXPORT __attribute__((weak)) extern const char linked_bad_alloc __asm__("_ZTISt9bad_alloc");
TERRACE_EXPORT __attribute__((weak)) extern const char linked_exception __asm__("_ZTISt9exception");
#endif

namespace {

#if defined(TERRACE_LINKED_TO_RUNTIME)

// A member of the archive which only operators.cpp refers to: programs that use an operator are linked to a C++ runtime,
// and these references take from it what they need.
Handler new_handler() noexcept { return std::get_new_handler(); }
[[noreturn]] void throw_bad_alloc() { throw std::bad_alloc(); }

#else

// The object depends on libc alone, so whatever belongs to the C++ runtime is a weak reference: null in a process without one.
// A program whose runtime is static exports from it what the libraries that it is linked to refer to, weakly as well.
__asm__(
    ".weak __gxx_personality_v0\n"
    ".weak __cxa_allocate_exception\n"
    ".weak __cxa_throw\n"
    ".weak __cxa_begin_catch\n"
    ".weak __cxa_end_catch\n"
    ".weak __cxa_call_terminate\n"
    ".weak _Unwind_Resume\n"
    ".weak _ZSt9terminatev\n"
    ".weak _ZSt15get_new_handlerv\n"
    ".weak _ZTISt9bad_alloc\n"
    ".weak _ZTVSt9bad_alloc\n"
    ".weak _ZNSt9bad_allocD1Ev\n"
    ".weak _ZTISt9exception\n"
    ".weak _ZTVSt9exception\n"
    ".weak _ZNSt9exceptionD2Ev\n"
    ".weak _ZTVN10__cxxabiv120__si_class_type_infoE\n");

// For a static runtime without std::bad_alloc, which the program then has no name of to catch it by.
struct NoMemory final : std::exception {
  const char* what() const noexcept override { return "std::bad_alloc"; }
};

// A runtime that came later, with a plug-in, perhaps by RTLD_LOCAL: ask the library itself, without loading it.
void* find(const char* name) noexcept {
  if (void* const f = dlsym(RTLD_DEFAULT, name)) return f;
  for (const char* library : {"libstdc++.so.6", "libc++.so.1"}) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    if (void* const f = dlsym(handle, name)) return f;
  }
  return nullptr;
}

Handler new_handler() noexcept {
  if (linked_get_new_handler != nullptr) return linked_get_new_handler();
  auto* const get = reinterpret_cast<Handler (*)()>(find("_ZSt15get_new_handlerv"));
  return get != nullptr ? get() : nullptr;
}

[[noreturn]] void throw_bad_alloc() {
  if (linked_throw != nullptr && &linked_bad_alloc != nullptr) throw std::bad_alloc();
  if (linked_throw != nullptr && &linked_exception != nullptr) throw NoMemory();
  if (auto* const raise = reinterpret_cast<Handler>(find("_ZSt17__throw_bad_allocv"))) raise();
  report_internal("operator new found no memory and no C++ runtime to say so");
}

#endif

}  // namespace

TERRACE_COLD void* retry(Attempt attempt, std::size_t alignment, std::size_t size) {
  for (Handler handler = new_handler(); handler != nullptr; handler = new_handler()) {
    handler();
    if (void* const p = attempt(alignment, size)) return p;
  }
  return nullptr;
}

TERRACE_COLD void* retry_or_throw(Attempt attempt, std::size_t alignment, std::size_t size) {
  if (void* const p = retry(attempt, alignment, size)) return p;
  throw_bad_alloc();
}

TERRACE_COLD void* or_null(Attempt attempt, std::size_t alignment, std::size_t size) noexcept {
  try {
    return attempt(alignment, size);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace terrace::shim

#endif
