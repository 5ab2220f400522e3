// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/environment.h"

#include "os/auxv.h"
#include "os/mutex.h"
#include "os/sysfs.h"

#include <atomic>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace terrace::os {
namespace {

constexpr std::string_view prefixes[] = {"TERRACE_", "UMEM_"};
constexpr std::size_t room = 8192;  // a path, and a word for each of the others

constinit RankedMutex<Rank::environment> mutex;
constinit std::atomic<bool> kept{false};
char copies[room];  // "NAME=value\0" one after the other, then an empty one
std::size_t used = 0;

void keep(const char* entry) noexcept {
  const auto begins_with = [entry](std::string_view prefix) { return std::strncmp(entry, prefix.data(), prefix.size()) == 0; };
  if (!begins_with(prefixes[0]) && !begins_with(prefixes[1])) return;
  const std::size_t length = std::strlen(entry) + 1;
  if (length >= room - used) return;
  std::memcpy(copies + used, entry, length);
  used += length;
}

// Constructors of other libraries may allocate before libc has set `environ` in this object's view.
void keep_from_kernel() noexcept {
  static char text[32768];
  const long length = read_file("/proc/self/environ", text, sizeof text);
  for (long at = 0; at < length; at += static_cast<long>(std::strlen(text + at)) + 1) keep(text + at);
}

}  // namespace

void keep_environment(char* const* variables) noexcept {
  // [E1] acquire, pairs with the release below: the copies are seen.
  if (kept.load(std::memory_order_acquire)) return;
  const LockGuard guard(mutex);
  if (kept.load(std::memory_order_relaxed)) return;
  if (variables == nullptr) variables = environ;
  if (secure_mode()) {
    // It belongs to somebody else.
  } else if (variables == nullptr) {
    keep_from_kernel();
  } else {
    for (; *variables != nullptr; ++variables) keep(*variables);
  }
  kept.store(true, std::memory_order_release);  // [E1]
}

const char* environment(const char* name) noexcept {
  keep_environment(nullptr);
  const std::string_view wanted(name);
  for (const char* entry = copies; *entry != '\0'; entry += std::strlen(entry) + 1) {
    if (std::strncmp(entry, wanted.data(), wanted.size()) == 0 && entry[wanted.size()] == '=') return entry + wanted.size() + 1;
  }
  return nullptr;
}

}  // namespace terrace::os
