// SPDX-License-Identifier: MIT OR Apache-2.0
#include "real.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace terrace::record {

namespace {

constexpr std::size_t arena_bytes = 1 << 16;
alignas(16) constinit unsigned char arena[arena_bytes];
constinit std::atomic<std::size_t> arena_used{0};

constinit Real found;
constinit std::atomic<bool> ready{false};
constinit thread_local bool looking = false;

template <typename Function>
bool look(const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  return function != nullptr;
}

// Two threads may do it at the same time: they find the same.
const Real* look_for_all() {
  Real all;
  looking = true;
  const bool complete = look("malloc", all.malloc) && look("free", all.free) && look("calloc", all.calloc) &&
                        look("realloc", all.realloc) && look("memalign", all.memalign) &&
                        look("aligned_alloc", all.aligned_alloc) && look("posix_memalign", all.posix_memalign);
  looking = false;
  if (!complete) std::abort();
  found = all;
  ready.store(true, std::memory_order_release);  // pairs with real()
  return &found;
}

}  // namespace

const Real* real() noexcept {
  if (ready.load(std::memory_order_acquire)) [[likely]]
    return &found;
  return looking ? nullptr : look_for_all();
}

void* bootstrap(std::size_t size) noexcept {
  if (size > arena_bytes) return nullptr;
  const std::size_t rounded = (size + 15) & ~std::size_t{15};
  const std::size_t at = arena_used.fetch_add(rounded, std::memory_order_relaxed);
  return at + rounded <= arena_bytes ? arena + at : nullptr;
}

bool is_bootstrap(const void* block) noexcept {
  return reinterpret_cast<std::uintptr_t>(block) - reinterpret_cast<std::uintptr_t>(arena) < arena_bytes;
}

std::size_t bootstrap_bytes_from(const void* block) noexcept {
  return static_cast<std::size_t>(arena + arena_bytes - static_cast<const unsigned char*>(block));
}

}  // namespace terrace::record
