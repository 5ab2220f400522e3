// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/memory.h"

#include "base/bits.h"
#include "os/auxv.h"
#include "os/syscall.h"

#include <elf.h>
#include <sys/mman.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace terrace::os {
namespace {

// Without MAP_NORESERVE: what is committed later is accounted, so a request beyond all memory fails instead of being killed.
constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS;

void* mmap_or_null(void* hint, std::size_t bytes, int protection, int flags) noexcept {
  const long r =
      arch::raw_syscall(SYS_mmap, static_cast<long>(address_of(hint)), static_cast<long>(bytes), protection, flags, -1, 0);
  return failed(r) ? nullptr : pointer_to(static_cast<std::uintptr_t>(r));
}

bool succeeded(long result) noexcept { return !failed(result); }

long on_range(long number, void* address, std::size_t bytes, long third) noexcept {
  return arch::raw_syscall(number, static_cast<long>(address_of(address)), static_cast<long>(bytes), third);
}

}  // namespace

std::size_t page_size() noexcept {
  static std::size_t size = 0;  // written with the same value by whoever comes first
  std::size_t s = __atomic_load_n(&size, __ATOMIC_RELAXED);
  if (s == 0) {
    s = auxiliary_value(AT_PAGESZ);
    if (s == 0) s = 4096;
    __atomic_store_n(&size, s, __ATOMIC_RELAXED);
  }
  return s;
}

void* reserve(std::size_t bytes, void* hint) noexcept { return mmap_or_null(hint, bytes, PROT_NONE, reserve_flags); }

namespace {

void* map_exactly(void* address, std::size_t bytes, int protection) noexcept {
  void* const p = mmap_or_null(address, bytes, protection, reserve_flags | MAP_FIXED_NOREPLACE);
  if (p != nullptr && p != address) {  // a kernel before 4.17 took the address for a hint
    release(p, bytes);
    return nullptr;
  }
  return p;
}

}  // namespace

void* reserve_at(void* address, std::size_t bytes) noexcept { return map_exactly(address, bytes, PROT_NONE); }

void* map_at(void* address, std::size_t bytes) noexcept { return map_exactly(address, bytes, PROT_READ | PROT_WRITE); }

bool commit(void* address, std::size_t bytes) noexcept {
  return succeeded(on_range(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE));
}

// Looked at each time: user-mode emulators answer yes and do nothing, for some mappings. The read maps the shared zero page.
bool purge(void* address, std::size_t bytes) noexcept {
  auto* const probe = static_cast<volatile unsigned char*>(address);
  *probe = 1;
  return succeeded(on_range(SYS_madvise, address, bytes, MADV_DONTNEED)) && *probe == 0;
}

void release(void* address, std::size_t bytes) noexcept { on_range(SYS_munmap, address, bytes, 0); }

bool move_pages(void* from, void* to, std::size_t bytes) noexcept {
  const auto length = static_cast<long>(bytes);
  return succeeded(arch::raw_syscall(SYS_mremap, static_cast<long>(address_of(from)), length, length,
                                     MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, static_cast<long>(address_of(to))));
}

void* map(std::size_t bytes) noexcept {
  return mmap_or_null(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
}

}  // namespace terrace::os
