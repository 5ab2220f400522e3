// SPDX-License-Identifier: MIT OR Apache-2.0
// The C interface, include/sys/vmem.h.
#include "base/report.h"
#include "os/memory.h"
#include "vmem/arena_list.h"

#include <atomic>
#include <cerrno>
#include <sys/vmem.h>

using terrace::address_of;
using terrace::is_power_of_two;
using terrace::pointer_to;
using terrace::round_up;
using terrace::vmem::Arena;
using terrace::vmem::arena_of;
using terrace::vmem::arenas;
using terrace::vmem::Constraints;

#define TERRACE_VMEM_PUBLIC extern "C" __attribute__((visibility("default")))

namespace {

constexpr std::size_t most_bytes = ~std::size_t{0} / 2;
constexpr std::size_t least_heap_span = 1024 * 1024;  // fewer calls of the system, and fewer mappings

void* fail(const char* function, const char* arena, std::size_t size, int flags, int error) noexcept {
  if ((flags & VM_PANIC) != 0) terrace::report_arena_failure(function, arena, size);
  errno = error;
  return nullptr;
}

// The heap arena's spans. No arena stands behind it.
void* map_span(vmem_t*, std::size_t size, int) noexcept { return terrace::os::map(size); }
void release_span(vmem_t*, void* start, std::size_t size) noexcept { terrace::os::release(start, size); }

constinit std::atomic<Arena*> heap_arena{nullptr};

}  // namespace

TERRACE_VMEM_PUBLIC vmem_t* vmem_create(const char* name, void* base, size_t size, size_t quantum, vmem_alloc_t* afunc,
                                        vmem_free_t* ffunc, vmem_t* source, size_t qcache_max, int vmflag) {
  const char* const shown = name != nullptr ? name : "";
  if (name == nullptr || !is_power_of_two(quantum) || (base != nullptr && size == 0)) {
    return static_cast<vmem_t*>(fail("vmem_create", shown, size, vmflag, EINVAL));
  }
  Arena* const arena = arenas.create(name, quantum, qcache_max, {.arena = source, .take = afunc, .give = ffunc});
  if (arena == nullptr) return static_cast<vmem_t*>(fail("vmem_create", shown, size, vmflag, ENOMEM));
  vmem_t* const vmp = public_name(*arena);
  if (size != 0 && vmem_add(vmp, base, size, vmflag) == nullptr) {
    arenas.destroy(*arena);  // errno stays: it has nothing that a function of the program's would be called for
    return nullptr;
  }
  return vmp;
}

TERRACE_VMEM_PUBLIC void vmem_destroy(vmem_t* vmp) { arenas.destroy(arena_of(vmp)); }

TERRACE_VMEM_PUBLIC void* vmem_add(vmem_t* vmp, void* addr, size_t size, int vmflag) {
  Arena& arena = arena_of(vmp);
  if (!arena.is_span(address_of(addr), size)) return fail("vmem_add", arena.name(), size, vmflag, EINVAL);
  if (!arena.add(address_of(addr), size)) return fail("vmem_add", arena.name(), size, vmflag, errno);
  return addr;
}

TERRACE_VMEM_PUBLIC void* vmem_alloc(vmem_t* vmp, size_t size, int vmflag) {
  if (size == 0) return nullptr;
  Arena& arena = arena_of(vmp);
  if (size > most_bytes) return fail("vmem_alloc", arena.name(), size, vmflag, ENOMEM);
  const std::size_t quantum = arena.quantum();
  const Constraints c{.asked = size, .size = round_up(size, quantum), .align = quantum};
  const std::uintptr_t address = arena.allocate(c, vmflag, true);
  if (address == Arena::nowhere) return fail("vmem_alloc", arena.name(), size, vmflag, ENOMEM);
  return pointer_to(address);
}

TERRACE_VMEM_PUBLIC void* vmem_xalloc(vmem_t* vmp, size_t size, size_t align, size_t phase, size_t nocross, void* minaddr,
                                      void* maxaddr, int vmflag) {
  if (size == 0) return nullptr;
  Arena& arena = arena_of(vmp);
  if (size > most_bytes) return fail("vmem_xalloc", arena.name(), size, vmflag, ENOMEM);
  const std::size_t quantum = arena.quantum();
  const Constraints c{.asked = size,
                      .size = round_up(size, quantum),
                      .align = align != 0 ? align : quantum,
                      .phase = phase,
                      .nocross = nocross,
                      .lowest = address_of(minaddr),
                      .limit = address_of(maxaddr)};
  if (!c.are_valid(quantum)) return fail("vmem_xalloc", arena.name(), size, vmflag, EINVAL);
  const std::uintptr_t address = arena.allocate(c, vmflag, false);
  if (address == Arena::nowhere) return fail("vmem_xalloc", arena.name(), size, vmflag, ENOMEM);
  return pointer_to(address);
}

TERRACE_VMEM_PUBLIC void vmem_free(vmem_t* vmp, void* addr, size_t size) {
  if (addr != nullptr || size != 0) arena_of(vmp).free("vmem_free", address_of(addr), size, true);
}

TERRACE_VMEM_PUBLIC void vmem_xfree(vmem_t* vmp, void* addr, size_t size) {
  if (addr != nullptr || size != 0) arena_of(vmp).free("vmem_xfree", address_of(addr), size, false);
}

TERRACE_VMEM_PUBLIC int vmem_contains(vmem_t* vmp, void* addr, size_t size) {
  return arena_of(vmp).contains(address_of(addr), size) ? 1 : 0;
}

TERRACE_VMEM_PUBLIC void vmem_walk(vmem_t* vmp, int typemask, void (*func)(void*, void*, size_t), void* arg) {
  arena_of(vmp).walk(typemask, func, arg);
}

TERRACE_VMEM_PUBLIC size_t vmem_size(vmem_t* vmp, int typemask) {
  Arena& arena = arena_of(vmp);
  const terrace::os::LockGuard guard(arena.mutex());
  const terrace::vmem::ArenaStatistics s = arena.statistics();
  std::size_t size = 0;
  if ((typemask & VMEM_ALLOC) != 0) size += s.in_use;
  if ((typemask & VMEM_FREE) != 0) size += s.total - s.in_use;
  return size;
}

TERRACE_VMEM_PUBLIC vmem_t* vmem_heap_arena(vmem_alloc_t** allocp, vmem_free_t** freep) {
  // Acquire and release: who finds the arena finds it whole.
  Arena* arena = heap_arena.load(std::memory_order_acquire);
  if (arena == nullptr) {
    Arena* const made = arenas.create("heap", terrace::os::page_size(), 0,
                                      {.arena = nullptr, .take = map_span, .give = release_span, .least = least_heap_span});
    if (made == nullptr) return static_cast<vmem_t*>(fail("vmem_heap_arena", "heap", 0, VM_NOSLEEP, ENOMEM));
    if (heap_arena.compare_exchange_strong(arena, made, std::memory_order_acq_rel, std::memory_order_acquire)) {
      arena = made;
    } else {
      arenas.destroy(*made);  // another thread was faster
    }
  }
  if (allocp != nullptr) *allocp = vmem_alloc;
  if (freep != nullptr) *freep = vmem_free;
  return public_name(*arena);
}
