// SPDX-License-Identifier: MIT OR Apache-2.0
// A library that the program is linked with: its destructors run after those of the program, and free what the program left
// there.
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

std::vector<std::string> left_in_library;

extern "C" void leave_in_library(std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) left_in_library.emplace_back(i, 'z');
}

namespace {

void say(const char* text) {
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0) _exit(9);
}

__attribute__((destructor(101))) void last() {
  for (std::size_t size = 1; size < 1000000; size *= 3) {
    void* volatile const p = std::malloc(size);
    std::memset(p, 1, size);
    void* volatile const q = std::realloc(p, 2 * size);
    std::free(q);
  }
  say("library destructor\n");
}

}  // namespace
