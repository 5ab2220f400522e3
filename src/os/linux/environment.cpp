// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/environment.h"

#include "base/report.h"
#include "base/text.h"
#include "os/auxv.h"
#include "os/metadata.h"
#include "os/mutex.h"
#include "os/sysfs.h"

#include <atomic>
#include <cstring>
#include <string_view>
#include <unistd.h>

extern "C" {
// Defined by the program, or not: include/terrace/options.h.
extern const char* terrace_options __attribute__((weak, visibility("default")));
}

namespace terrace::os {
namespace {

constexpr std::string_view prefixes[] = {"TERRACE_", "UMEM_"};
constexpr std::string_view options[] = {"TERRACE_RUNG",  "TERRACE_PLACEMENT", "TERRACE_BUDGET", "TERRACE_DECAY_MS",
                                        "TERRACE_CHECK", "TERRACE_PROFILE",   "TERRACE_STATS",  "TERRACE_STATS_FILE"};
constexpr std::size_t room = 8192;  // a path, and a word for each of the others

// Together, so that a start touches one page.
constinit struct {
  RankedMutex<Rank::environment> mutex;
  std::atomic<bool> kept{false};
  std::size_t used = 0;
  char copies[room] = {};  // "NAME=value\0" one after the other, then an empty one
} own;

void keep(const char* entry) noexcept {
  const auto begins_with = [entry](std::string_view prefix) { return std::strncmp(entry, prefix.data(), prefix.size()) == 0; };
  if (!begins_with(prefixes[0]) && !begins_with(prefixes[1])) return;
  const std::size_t length = std::strlen(entry) + 1;
  if (length >= room - own.used) return;
  std::memcpy(own.copies + own.used, entry, length);
  own.used += length;
}

bool is_option(std::string_view word) noexcept {
  const Halves halves = split(word, '=');
  for (const std::string_view each : options) {
    if (halves.before == each) return halves.found;
  }
  return false;
}

// Behind the environment's, which are found first.
void keep_options_of_program() noexcept {
  if (&terrace_options == nullptr || terrace_options == nullptr) return;
  for (Halves words{.before = {}, .behind = terrace_options, .found = true}; words.found;) {
    words = split(words.behind, ' ');
    const std::string_view word = words.before;
    if (word.empty()) continue;
    char* const copy = own.copies + own.used;
    if (word.size() + 1 >= room - own.used) {
      warn("terrace_options", terrace_options, "too long; the rest is ignored");
      return;
    }
    std::memcpy(copy, word.data(), word.size());
    if (is_option(word)) {
      own.used += word.size() + 1;
    } else {
      warn("terrace_options", copy, "no NAME=VALUE of an option; ignored");
      std::memset(copy, 0, word.size());
    }
  }
}

// Constructors of other libraries may allocate before libc has set `environ` in this object's view.
void keep_from_kernel() noexcept {
  constexpr std::size_t most = 32768;
  const Scratch<char[]> text(most);
  const long length = text.get() == nullptr ? 0 : read_file("/proc/self/environ", text.get(), most);
  for (long at = 0; at < length; at += static_cast<long>(std::strlen(text.get() + at)) + 1) keep(text.get() + at);
}

}  // namespace

void keep_environment(char* const* variables) noexcept {
  // [E1] acquire, pairs with the release below: the copies are seen.
  if (own.kept.load(std::memory_order_acquire)) return;
  const LockGuard guard(own.mutex);
  if (own.kept.load(std::memory_order_relaxed)) return;
  if (variables == nullptr) variables = environ;
  if (secure_mode()) {
    // It belongs to somebody else.
  } else if (variables == nullptr) {
    keep_from_kernel();
  } else {
    for (; *variables != nullptr; ++variables) keep(*variables);
  }
  keep_options_of_program();
  own.kept.store(true, std::memory_order_release);  // [E1]
}

const char* environment(const char* name) noexcept {
  keep_environment(nullptr);
  const std::string_view wanted(name);
  for (const char* entry = own.copies; *entry != '\0'; entry += std::strlen(entry) + 1) {
    if (std::strncmp(entry, wanted.data(), wanted.size()) == 0 && entry[wanted.size()] == '=') return entry + wanted.size() + 1;
  }
  return nullptr;
}

}  // namespace terrace::os
