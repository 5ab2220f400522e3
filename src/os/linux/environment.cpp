// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/environment.h"

#include "os/auxv.h"
#include "os/sysfs.h"

#include <cstring>
#include <string_view>
#include <unistd.h>

namespace terrace::os {
namespace {

// Constructors of other libraries may allocate before libc has set `environ` in this object's view; then the kernel's copy is
// read.
char early_copy[32768];

const char* find(const char* entry, std::string_view name) noexcept {
  if (std::strncmp(entry, name.data(), name.size()) != 0 || entry[name.size()] != '=') return nullptr;
  return entry + name.size() + 1;
}

const char* find_in_kernel_copy(std::string_view name) noexcept {
  static long length = -2;
  if (length == -2) length = read_file("/proc/self/environ", early_copy, sizeof early_copy);
  for (long at = 0; at < length;) {
    const char* const entry = early_copy + at;
    if (const char* value = find(entry, name)) return value;
    at += static_cast<long>(std::strlen(entry)) + 1;
  }
  return nullptr;
}

}  // namespace

const char* environment(const char* name) noexcept {
  if (secure_mode()) return nullptr;
  const std::string_view wanted(name);
  if (environ == nullptr) return find_in_kernel_copy(wanted);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (const char* value = find(*entry, wanted)) return value;
  }
  return nullptr;
}

}  // namespace terrace::os
