// SPDX-License-Identifier: MIT OR Apache-2.0
#include "report.h"

#include "disturbances.h"

#include <cstdarg>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace stress {

void fail(const char* format, ...) {
  char line[512] = "stress: ";
  constexpr std::size_t prefix = 8;
  va_list arguments;
  va_start(arguments, format);
  const int n = std::vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
  va_end(arguments);
  std::size_t length = prefix + (n < 0 ? 0 : static_cast<std::size_t>(n));
  if (length > sizeof line - 1) length = sizeof line - 1;
  line[length++] = '\n';
  if (write(STDERR_FILENO, line, length) < 0) _exit(2);
  _exit(1);
}

void* map_pages(std::size_t bytes) {
  constexpr int attempts = 10000;
  constexpr useconds_t pause_microseconds = 1000;
  for (int i = 0; i < attempts; ++i) {
    void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) return p;
    if (i == attempts / 10) lift_limits();
    usleep(pause_microseconds);
  }
  fail("no memory for the test itself");
}

}  // namespace stress
