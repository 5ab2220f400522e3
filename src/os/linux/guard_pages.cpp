// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/guard_pages.h"

#include "base/bits.h"
#include "os/memory.h"
#include "os/syscall.h"

#include <cerrno>
#include <sys/mman.h>

namespace terrace::os {

namespace {

constexpr long madv_guard_install = 102, madv_guard_remove = 103;  // newer than most headers

bool advise(void* address, std::size_t bytes, long advice) noexcept {
  for (;;) {
    const long r = arch::raw_syscall(SYS_madvise, static_cast<long>(address_of(address)), static_cast<long>(bytes), advice);
    if (r != -EINTR) return !failed(r);
  }
}

}  // namespace

bool install_guards(void* address, std::size_t bytes) noexcept { return advise(address, bytes, madv_guard_install); }
bool remove_guards(void* address, std::size_t bytes) noexcept { return advise(address, bytes, madv_guard_remove); }

bool make_inaccessible(void* address, std::size_t bytes) noexcept {
  return !failed(arch::raw_syscall(SYS_mmap, static_cast<long>(address_of(address)), static_cast<long>(bytes), PROT_NONE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
}

bool deny_access(void* address, std::size_t bytes) noexcept {
  return !failed(arch::raw_syscall(SYS_mprotect, static_cast<long>(address_of(address)), static_cast<long>(bytes), PROT_NONE));
}

void* map_between_guards(std::size_t bytes) noexcept {
  const std::size_t page = page_size();
  bytes = round_up(bytes, page);
  auto* const all = static_cast<std::byte*>(reserve(bytes + 2 * page, nullptr));
  if (all == nullptr) return nullptr;
  if (commit(all + page, bytes)) return all + page;
  release(all, bytes + 2 * page);
  return nullptr;
}

}  // namespace terrace::os
