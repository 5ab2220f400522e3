// SPDX-License-Identifier: MIT OR Apache-2.0
#include "shim/entry.h"

#include "introspect/descriptors.h"

// Who links the static archive gets the members that something refers to: process.cpp, with the fork handlers, has to be one,
// and what debuggers look for another.
extern "C" terrace::heap::FastPathSwitch::Entered terrace_enter_vfork() __attribute__((visibility("hidden")));
extern "C" __attribute__((used, visibility("hidden")))
terrace::heap::FastPathSwitch::Entered (*const terrace_anchor)() = terrace_enter_vfork;
extern "C" __attribute__((used, visibility("hidden"))) const void* const terrace_described = &terrace_debug_descriptor;

namespace terrace::shim {

void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

// Where the heap profiler's stacks begin: at the functions that programs call, of which malloc itself has no frame.
void* callocate(std::size_t count, std::size_t size) noexcept {
  const profile::Entered entered(__builtin_frame_address(0));
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  void* const p = heap::heap.allocate_zeroed(bytes);
  return p != nullptr ? p : out_of_memory();
}

void* reallocate_slow(void* p, std::size_t size) noexcept {
  const profile::Entered entered(__builtin_frame_address(0));
  if (p == nullptr) return allocate(size);
  if (size == 0) {  // as glibc does
    heap::free(p);
    return nullptr;
  }
  return heap::heap.reallocate(p, size);
}

void* reallocate_array(void* p, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  return reallocate(p, bytes);
}

void* aligned(std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return heap::heap.allocate_aligned(size, alignment);
}

int posix_aligned(void** out, std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved = errno;
  void* const p = heap::heap.allocate_aligned(size, alignment);
  errno = saved;  // the result says it all
  if (p == nullptr) return ENOMEM;
  *out = p;
  return 0;
}

}  // namespace terrace::shim
