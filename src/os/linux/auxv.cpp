// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/auxv.h"

#include <cerrno>
#include <sys/auxv.h>

namespace terrace::os {

// libc's getauxval reads a vector kept by the dynamic linker; it sets errno when an entry is missing.
unsigned long auxiliary_value(unsigned long type) noexcept {
  const int saved = errno;
  const unsigned long value = getauxval(type);
  errno = saved;
  return value;
}

bool secure_mode() noexcept { return auxiliary_value(AT_SECURE) != 0; }

}  // namespace terrace::os
