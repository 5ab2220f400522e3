// SPDX-License-Identifier: MIT OR Apache-2.0
// dlopen() of libc without RTLD_DEEPBIND. With it a library looks for its names in what it depends on before the program: it
// would find malloc and free in libc, where everybody else finds them here, and blocks that pass between it and the program
// would come to the wrong one. PHP opens its extensions so.
//
// Not in the archive: a static program has nothing behind it to jump to. Compiled with optimisation in every build, since it
// has to be a jump: libc takes the return address for the caller's, whose RUNPATH and $ORIGIN count.
#include "base/attributes.h"

#include <atomic>
#include <dlfcn.h>

#if !defined(TERRACE_SANITIZED) && defined(__GLIBC__)

namespace {

using Open = void* (*)(const char* file, int mode);

Open next_open() noexcept {
  static constinit std::atomic<Open> known{nullptr};  // relaxed: it is the same for all who ask
  Open next = known.load(std::memory_order_relaxed);
  if (next == nullptr) known.store(next = reinterpret_cast<Open>(dlsym(RTLD_NEXT, "dlopen")), std::memory_order_relaxed);
  return next;
}

}  // namespace

extern "C" TERRACE_EXPORT void* dlopen(const char* file, int mode) noexcept { return next_open()(file, mode & ~RTLD_DEEPBIND); }

#endif
