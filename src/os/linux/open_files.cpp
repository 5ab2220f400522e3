// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/open_files.h"

// glibc exports both (GLIBC_2.2.5). Weak: absent from other libcs, and from static programs without stdio.
extern "C" {
void _IO_list_lock() __attribute__((weak));    // NOLINT(readability-identifier-naming,bugprone-reserved-identifier)
void _IO_list_unlock() __attribute__((weak));  // NOLINT(readability-identifier-naming,bugprone-reserved-identifier)
}

namespace terrace::os {

bool lock_open_files() noexcept {
  if (&_IO_list_lock == nullptr || &_IO_list_unlock == nullptr) return false;
  _IO_list_lock();
  return true;
}

void unlock_open_files() noexcept { _IO_list_unlock(); }

}  // namespace terrace::os
