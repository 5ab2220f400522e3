// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/guard_pages.h"

#include "base/bits.h"
#include "os/memory.h"
#include "os/syscall.h"

#include <sys/mman.h>

namespace terrace::os {

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
