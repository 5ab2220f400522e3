// SPDX-License-Identifier: MIT OR Apache-2.0
// libc's names. Not in builds with a sanitizer, which brings its own.
#if !defined(TERRACE_SANITIZED)

#include "introspect/statistics.h"
#include "os/io.h"
#include "os/metadata.h"
#include "shim/entry.h"
#include "terrace/stats.h"

#include <bit>
#include <cstdio>
#include <malloc.h>

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but the names

extern "C" {

__attribute__((aligned(64))) TERRACE_EXPORT void* malloc(std::size_t size) { return shim::allocate(size); }
__attribute__((aligned(64))) TERRACE_EXPORT void free(void* p) { heap::free(p); }
TERRACE_EXPORT void cfree(void* p) { heap::free(p); }
TERRACE_EXPORT void* calloc(std::size_t count, std::size_t size) { return shim::callocate(count, size); }
TERRACE_EXPORT void* realloc(void* p, std::size_t size) { return shim::reallocate(p, size); }
TERRACE_EXPORT void* reallocarray(void* p, std::size_t count, std::size_t size) {
  return shim::reallocate_array(p, count, size);
}
TERRACE_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) { return shim::aligned(alignment, size); }
TERRACE_EXPORT void* memalign(std::size_t alignment, std::size_t size) {
  // glibc's memalign takes any alignment and rounds it up.
  if (alignment > ~std::size_t{0} / 2 + 1) {
    errno = EINVAL;
    return nullptr;
  }
  return shim::aligned(std::bit_ceil(max_of<std::size_t>(alignment, 1)), size);
}
TERRACE_EXPORT int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  return shim::posix_aligned(out, alignment, size);
}
TERRACE_EXPORT void* valloc(std::size_t size) { return shim::aligned(os::page_size(), size); }
TERRACE_EXPORT void* pvalloc(std::size_t size) {
  const std::size_t page = os::page_size();
  if (size > ~std::size_t{0} - page) return shim::out_of_memory();
  return shim::aligned(page, round_up(size, page));
}
TERRACE_EXPORT void free_sized(void* p, std::size_t size) { shim::free_sized(p, size); }
TERRACE_EXPORT void free_aligned_sized(void* p, std::size_t alignment, std::size_t size) {
  shim::free_aligned_sized(p, alignment, size);
}

TERRACE_EXPORT std::size_t malloc_usable_size(void* p) { return heap::heap.usable_size(p, "malloc_usable_size"); }
TERRACE_EXPORT int malloc_trim(std::size_t) { return heap::heap.trim() ? 1 : 0; }

}  // extern "C"

#if defined(__GLIBC__)

namespace {

// mallinfo: what has a meaning here. Blocks in the large class stand for glibc's mmapped ones.
struct mallinfo2 info() noexcept {
  struct mallinfo2 m = {};
  const os::Scratch<introspect::Snapshot> memory;
  introspect::Snapshot* const s = memory.get();
  if (s == nullptr) return m;
  introspect::take_snapshot(*s);
  // Other threads go on meanwhile: what is read later may be ahead, and no difference is to fall below 0.
  const auto less = [](std::size_t a, std::size_t b) { return a - min_of(a, b); };
  const introspect::Row& large = s->total[static_cast<std::size_t>(introspect::Level::large)];
  m.hblks = less(large.get(introspect::Column::allocations), large.get(introspect::Column::frees));
  m.hblkhd = s->live_large;
  m.uordblks = s->live - m.hblkhd;
  m.arena = less(s->committed, m.hblkhd);
  m.fordblks = less(m.arena, m.uordblks);
  m.fsmblks = s->held;
  m.keepcost = s->dirty;
  return m;
}

int clamped(std::size_t v) noexcept { return v > 0x7fffffff ? 0x7fffffff : static_cast<int>(v); }

}  // namespace

extern "C" {

TERRACE_EXPORT struct mallinfo2 mallinfo2() { return info(); }
TERRACE_EXPORT struct mallinfo mallinfo() {
  const struct mallinfo2 m = info();
  return {clamped(m.arena),   clamped(m.ordblks), clamped(m.smblks),   clamped(m.hblks),    clamped(m.hblkhd),
          clamped(m.usmblks), clamped(m.fsmblks), clamped(m.uordblks), clamped(m.fordblks), clamped(m.keepcost)};
}

TERRACE_EXPORT void malloc_stats() {
  char text[4096];
  const std::size_t n = terrace_stats_text(text, sizeof text);
  os::write_all(os::standard_error, {text, min_of(n, sizeof text - 1)});
}

// glibc writes XML of its own arenas; here the root element and its totals are the same, with one element per level.
TERRACE_EXPORT int malloc_info(int options, FILE* out) {
  if (options != 0) return EINVAL;
  const struct mallinfo2 m = info();
  std::fprintf(out, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n");
  std::fprintf(out, "<total type=\"fast\" count=\"0\" size=\"%zu\"/>\n<total type=\"rest\" count=\"0\" size=\"%zu\"/>\n",
               m.fsmblks, m.fordblks);
  std::fprintf(out, "<system type=\"current\" size=\"%zu\"/>\n</heap>\n", m.arena);
  std::fprintf(out, "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n", m.hblks, m.hblkhd);
  std::fprintf(out, "<system type=\"current\" size=\"%zu\"/>\n</malloc>\n", m.arena + m.hblkhd);
  return 0;
}

// What has a meaning: M_TRIM_THRESHOLD and M_ARENA_MAX and the like ask for bounds that the budget and decay keep anyway, so
// they are accepted; a parameter that glibc does not know is refused as there. 1: success.
TERRACE_EXPORT int mallopt(int parameter, int) {
  switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX: return 1;
    default: return 0;
  }
}

// The names that libc's own malloc is exported by, for wrappers that define malloc themselves and for libraries from before
// symbols had versions. Left to libc, their blocks would come to our free, and ours to its. Jumps, no aliases: tools show one
// name for an address, and it should be malloc.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
TERRACE_EXPORT void* __libc_malloc(std::size_t size) { return malloc(size); }
TERRACE_EXPORT void __libc_free(void* p) { free(p); }
TERRACE_EXPORT void __libc_cfree(void* p) { free(p); }
TERRACE_EXPORT void* __libc_calloc(std::size_t count, std::size_t size) { return calloc(count, size); }
TERRACE_EXPORT void* __libc_realloc(void* p, std::size_t size) { return realloc(p, size); }
TERRACE_EXPORT void* __libc_memalign(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
TERRACE_EXPORT void* __libc_valloc(std::size_t size) { return valloc(size); }
TERRACE_EXPORT void* __libc_pvalloc(std::size_t size) { return pvalloc(size); }
TERRACE_EXPORT int __posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  return posix_memalign(out, alignment, size);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // extern "C"

#endif
#endif
