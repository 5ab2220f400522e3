// SPDX-License-Identifier: MIT OR Apache-2.0
// The C interface, include/terrace/lab.h.
#include "lab/heap.h"
#include "percpu/transaction.h"
#include "terrace/lab_emit.h"

#include <cerrno>

using terrace::lab::Heap;
using terrace::lab::Thread;

#define TERRACE_LAB_PUBLIC extern "C" __attribute__((visibility("default")))

namespace {

Heap& inside(terrace_lab_heap* heap) { return *reinterpret_cast<Heap*>(heap); }
const Heap& inside(const terrace_lab_heap* heap) { return *reinterpret_cast<const Heap*>(heap); }
Thread& inside(terrace_lab_thread* thread) { return *reinterpret_cast<Thread*>(thread); }

// The library that the engine is linked into is unloaded, by this thread.
__attribute__((destructor)) void at_unloading() { terrace::percpu::forget_sections(); }

bool is_shared(int level) { return level > TERRACE_LAB_THREAD && level < TERRACE_LAB_LEVELS; }

}  // namespace

TERRACE_LAB_PUBLIC size_t terrace_lab_heap_bytes(const terrace_lab_config* config) {
  const size_t bytes = Heap::bytes(*config);
  if (bytes == 0) errno = EINVAL;
  return bytes;
}

TERRACE_LAB_PUBLIC terrace_lab_heap* terrace_lab_init(void* memory, const terrace_lab_config* config) {
  Heap* const heap = Heap::make(memory, *config);
  if (heap == nullptr) errno = EINVAL;
  return reinterpret_cast<terrace_lab_heap*>(heap);
}

TERRACE_LAB_PUBLIC void terrace_lab_attach(terrace_lab_heap* heap, terrace_lab_thread* thread) {
  inside(heap).attach(inside(thread));
}

TERRACE_LAB_PUBLIC void terrace_lab_detach(terrace_lab_thread* thread) {
  inside(thread).heap->detach(inside(thread));
  terrace::percpu::forget_sections();
}

TERRACE_LAB_PUBLIC void terrace_lab_forget_sections() { terrace::percpu::forget_sections(); }

TERRACE_LAB_PUBLIC void* terrace_lab_allocate_slow(terrace_lab_thread* thread, size_t size) {
  return inside(thread).heap->allocate(inside(thread), size);
}

TERRACE_LAB_PUBLIC void* terrace_lab_allocate_at(terrace_lab_thread* thread, int level, size_t size) {
  return inside(thread).heap->allocate_at(inside(thread), level, size);
}

// In one line of code, and the next.
TERRACE_LAB_PUBLIC __attribute__((aligned(64))) void* terrace_lab_allocate_core(terrace_lab_thread* thread, size_t size) {
  return Heap::allocate_core(inside(thread), size);
}

TERRACE_LAB_PUBLIC void* terrace_lab_allocate_aligned(terrace_lab_thread* thread, size_t size, size_t alignment) {
  return inside(thread).heap->allocate_aligned(inside(thread), size, alignment);
}

TERRACE_LAB_PUBLIC uint64_t terrace_lab_allocated_bytes(const terrace_lab_thread* thread) {
  const auto& t = *reinterpret_cast<const Thread*>(thread);
  return t.earlier + t.bytes + (t.top - t.start);
}

TERRACE_LAB_PUBLIC void* terrace_lab_take(terrace_lab_heap* heap, int level, size_t min, size_t desired, size_t* actual) {
  terrace::lab::Request request{.min = min, .desired = desired};  // not copied: the copy would wait for these two stores
  const terrace::lab::Range got = inside(heap).take_range(level, request);
  if (got.empty()) return nullptr;
  *actual = got.size();
  return terrace::pointer_to(got.start);
}

TERRACE_LAB_PUBLIC void terrace_lab_count_direct(terrace_lab_heap* heap, size_t bytes) { inside(heap).count_direct(bytes); }

TERRACE_LAB_PUBLIC int terrace_lab_install(terrace_lab_heap* heap, int level, void* start, size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const Heap::Install result =
      is_shared(level) ? inside(heap).install_range(level, {address, address + bytes}) : Heap::Install::no_level;
  if (result == Heap::Install::done) return 0;
  errno = result == Heap::Install::busy ? EBUSY : EINVAL;
  return -1;
}

TERRACE_LAB_PUBLIC size_t terrace_lab_drain(terrace_lab_heap* heap) { return inside(heap).drain(); }

TERRACE_LAB_PUBLIC size_t terrace_lab_max_take(const terrace_lab_heap* heap, int level, size_t enough) {
  return inside(heap).max_take(level, enough);
}

TERRACE_LAB_PUBLIC size_t terrace_lab_free_bytes(terrace_lab_heap* heap, int level) {
  return level == TERRACE_LAB_THREAD || is_shared(level) ? inside(heap).free_bytes(level) : 0;
}

TERRACE_LAB_PUBLIC int terrace_lab_retire_all(terrace_lab_heap* heap) {
  if (inside(heap).retire_all()) return 0;
  errno = EBUSY;
  return -1;
}

TERRACE_LAB_PUBLIC void terrace_lab_collected(terrace_lab_heap* heap, size_t young_bytes) {
  inside(heap).collected(young_bytes);
}

TERRACE_LAB_PUBLIC void terrace_lab_report_tlabs(terrace_lab_heap* heap, unsigned threads, uint64_t unused_bytes,
                                                 size_t largest_bytes) {
  inside(heap).report_tlabs(threads, unused_bytes, largest_bytes);
}

TERRACE_LAB_PUBLIC void terrace_lab_walk(terrace_lab_heap* heap, terrace_lab_visitor* visit, void* argument) {
  inside(heap).walk(visit, argument);
}

TERRACE_LAB_PUBLIC void terrace_lab_read_counters(terrace_lab_heap* heap, terrace_lab_counters* out) {
  inside(heap).read_counters(*out);
}

TERRACE_LAB_PUBLIC size_t terrace_lab_size(const terrace_lab_heap* heap, const terrace_lab_thread* thread, int level) {
  return inside(heap).next_size(reinterpret_cast<const Thread*>(thread), level);
}

TERRACE_LAB_PUBLIC int terrace_lab_associated(const terrace_lab_heap* heap) {
  return inside(heap).by_core() ? TERRACE_LAB_BY_CORE : TERRACE_LAB_BY_THREAD;
}

TERRACE_LAB_PUBLIC void terrace_lab_read_attributes(const terrace_lab_heap* heap, terrace_lab_attributes* out) {
  inside(heap).read_attributes(*out);
}

TERRACE_LAB_PUBLIC int terrace_lab_read_layout(const terrace_lab_heap* heap, int level, terrace_lab_layout* out) {
  if (!is_shared(level) || inside(heap).level(level).count == 0) {
    errno = EINVAL;
    return -1;
  }
  const Heap::Level& l = inside(heap).level(level);
  const terrace::arch::Area area = l.restartable() ? inside(heap).area() : terrace::arch::Area{};
  *out = {.base = reinterpret_cast<char*>(l.buffers),
          .stride = sizeof(terrace::lab::Buffer),
          .count = l.count,
          .section_offset = area.critical_section,
          .slot_offset = area.slot,
          .sync = l.config.sync,
          .tail_reserve = inside(heap).reserve(),
          .aside = l.sidelined.place(),
          .aside_count = l.sidelined.place_of_count()};
  return 0;
}

TERRACE_LAB_PUBLIC unsigned terrace_lab_index(const terrace_lab_heap* heap, int level) {
  return is_shared(level) ? inside(heap).index_here(level) : 0;
}
