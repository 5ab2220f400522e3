// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/possible_cpus.h"

#include "os/sysfs.h"

namespace terrace::os {
namespace {

// The last number of "0-3,8-11"; without the file, a bound that no machine passes.
unsigned read_possible() noexcept {
  constexpr unsigned bound_without_sysfs = 1024;
  char text[512];
  if (read_file("/sys/devices/system/cpu/possible", text, sizeof text) <= 0) return bound_without_sysfs;
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
