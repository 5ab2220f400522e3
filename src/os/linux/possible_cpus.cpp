// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/possible_cpus.h"

#include "os/syscall.h"
#include "os/sysfs.h"

#include <cstdint>

namespace terrace::os {
namespace {

// Without sysfs (a chroot, a sandbox): the kernel says how many bytes its cpu masks have.
unsigned bound_by_mask() noexcept {
  constexpr unsigned bits_per_byte = 8, largest_mask = 1024, bound_without_anything = 4096;
  unsigned char mask[largest_mask];
  const long bytes =
      arch::raw_syscall(SYS_sched_getaffinity, 0, largest_mask, static_cast<long>(reinterpret_cast<std::uintptr_t>(mask)));
  return failed(bytes) || bytes == 0 ? bound_without_anything : static_cast<unsigned>(bytes) * bits_per_byte;
}

// The last number of "0-3,8-11".
unsigned read_possible() noexcept {
  char text[512];
  if (read_file("/sys/devices/system/cpu/possible", text, sizeof text) <= 0) return bound_by_mask();
  unsigned last = 0, current = 0;
  for (const char* p = text; *p != '\0' && *p != '\n'; ++p) {
    if (*p >= '0' && *p <= '9') {
      current = current * 10 + static_cast<unsigned>(*p - '0');
      last = current;
    } else {
      current = 0;
    }
  }
  return last + 1;
}

}  // namespace

unsigned possible_cpus() noexcept {
  static unsigned count = 0;  // written with the same value by whoever comes first
  unsigned c = __atomic_load_n(&count, __ATOMIC_RELAXED);
  if (c == 0) {
    c = read_possible();
    __atomic_store_n(&count, c, __ATOMIC_RELAXED);
  }
  return c;
}

}  // namespace terrace::os
