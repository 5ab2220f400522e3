// SPDX-License-Identifier: MIT OR Apache-2.0
// include/terrace/malloc.h, profile.h, stats.h, version.h
#include "introspect/profile_file.h"
#include "introspect/statistics.h"
#include "os/metadata.h"
#include "profile/profiler.h"
#include "shim/entry.h"
#include "terrace/malloc.h"
#include "terrace/profile.h"
#include "terrace/stats.h"
#include "terrace/version.h"

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but the names

namespace {

using Writer = std::size_t (*)(const introspect::Snapshot&, char*, std::size_t) noexcept;

std::size_t with_snapshot(Writer write, char* buf, std::size_t size) noexcept {
  const os::Scratch<introspect::Snapshot> snapshot;
  if (snapshot.get() == nullptr) {
    errno = ENOMEM;
    return 0;
  }
  introspect::take_snapshot(*snapshot.get());
  const std::size_t length = write(*snapshot.get(), buf, size);
  if (size != 0) buf[min_of(length, size - 1)] = '\0';
  return length;
}

}  // namespace

extern "C" {

TERRACE_EXPORT void* terrace_malloc(std::size_t size) { return shim::allocate(size); }
TERRACE_EXPORT void terrace_free(void* p) { heap::free(p); }
TERRACE_EXPORT void* terrace_calloc(std::size_t count, std::size_t size) { return shim::callocate(count, size); }
TERRACE_EXPORT void* terrace_realloc(void* p, std::size_t size) { return shim::reallocate(p, size); }
TERRACE_EXPORT void* terrace_reallocarray(void* p, std::size_t count, std::size_t size) {
  return shim::reallocate_array(p, count, size);
}
TERRACE_EXPORT void* terrace_aligned_alloc(std::size_t alignment, std::size_t size) { return shim::aligned(alignment, size); }
TERRACE_EXPORT int terrace_posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  return shim::posix_aligned(out, alignment, size);
}
TERRACE_EXPORT std::size_t terrace_malloc_usable_size(const void* p) { return heap::heap.usable_size(p, "malloc_usable_size"); }
TERRACE_EXPORT int terrace_malloc_trim(std::size_t) { return heap::heap.trim() ? 1 : 0; }
TERRACE_EXPORT void terrace_free_sized(void* p, std::size_t size) { shim::free_sized(p, size); }
TERRACE_EXPORT void terrace_free_aligned_sized(void* p, std::size_t alignment, std::size_t size) {
  shim::free_aligned_sized(p, alignment, size);
}

TERRACE_EXPORT std::size_t terrace_stats_json(char* buf, std::size_t size) {
  return with_snapshot(introspect::write_json, buf, size);
}
TERRACE_EXPORT std::size_t terrace_stats_text(char* buf, std::size_t size) {
  return with_snapshot(introspect::write_text, buf, size);
}
TERRACE_EXPORT int terrace_profile_start(std::size_t period, int flags) {
  if (period == 0 || period > profile::Profiler::most_period || (flags & ~TERRACE_PROFILE_FRAMES) != 0) return EINVAL;
  if (!heap::heap.ready()) return ENOMEM;  // which reads the environment's wish: this one comes later, and holds
  profile::profiler.set_copies((flags & TERRACE_PROFILE_FRAMES) == 0);
  profile::profiler.set_period(period);
  return 0;
}
TERRACE_EXPORT void terrace_profile_stop() { profile::profiler.set_period(0); }
TERRACE_EXPORT std::size_t terrace_profile_period() { return profile::profiler.period(); }
TERRACE_EXPORT int terrace_profile_write(int fd) { return introspect::write_profile(fd); }

TERRACE_EXPORT const char* terrace_rung() { return percpu::name_of(percpu::ladder().rung); }
TERRACE_EXPORT const char* terrace_rung_reason() { return percpu::ladder().reason; }
TERRACE_EXPORT const char* terrace_version() { return TERRACE_VERSION; }

}  // extern "C"
