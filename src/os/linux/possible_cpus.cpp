// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/possible_cpus.h"

#include "os/metadata.h"
#include "os/syscall.h"
#include "os/sysfs.h"

#include <cstdint>
#include <string_view>

namespace terrace::os {
namespace {

// Without sysfs (a chroot, a sandbox): the kernel says how many bytes its cpu masks have, if there is room for one.
unsigned bound_by_mask() noexcept {
  constexpr unsigned bits_per_byte = 8, bound_without_anything = 8192, most_bytes = 16384;
  const Scratch<unsigned char[]> mask(most_bytes);
  const long bytes =
      arch::raw_syscall(SYS_sched_getaffinity, 0, most_bytes, static_cast<long>(reinterpret_cast<std::uintptr_t>(mask.get())));
  return failed(bytes) || bytes == 0 ? bound_without_anything : static_cast<unsigned>(bytes) * bits_per_byte;
}

}  // namespace

unsigned count_in_list(const char* path) noexcept {
  constexpr unsigned decimal = 10, beyond_belief = 1U << 20;
  unsigned highest = 0, current = 0;
  bool any = false;
  const bool whole = read_in_pieces(path, [&](std::string_view text) {
    for (const char c : text) {
      const bool digit = c >= '0' && c <= '9';
      if (digit && current < beyond_belief) current = current * decimal + static_cast<unsigned>(c - '0');
      if (!digit) current = 0;
      any = any || digit;
      if (current > highest) highest = current;
    }
  });
  return whole && any ? highest + 1 : 0;
}

unsigned possible_cpus() noexcept {
  static unsigned count = 0;  // written with the same value by whoever comes first
  unsigned c = __atomic_load_n(&count, __ATOMIC_RELAXED);
  if (c == 0) {
    c = count_in_list("/sys/devices/system/cpu/possible");
    if (c == 0) c = bound_by_mask();
    __atomic_store_n(&count, c, __ATOMIC_RELAXED);
  }
  return c;
}

}  // namespace terrace::os
