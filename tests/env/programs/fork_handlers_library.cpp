// SPDX-License-Identifier: MIT OR Apache-2.0
// A library whose fork handlers allocate, registered by its constructor: before those of an object that is initialised later,
// so "prepare" runs after that object's. glibc's malloc can be used in all three.
#include <cstdlib>
#include <cstring>
#include <pthread.h>

namespace {

void* held = nullptr;

void churn() {
  for (std::size_t size = 8; size < 300000; size += size / 2) {
    void* volatile const p = std::malloc(size);
    if (p != nullptr) std::memset(p, 1, size);
    std::free(p);
  }
}

void prepare() {
  churn();
  held = std::malloc(3000);
}
void parent() {
  std::free(held);
  churn();
}
void child() {
  std::free(held);
  churn();
}

__attribute__((constructor)) void at_load() { pthread_atfork(prepare, parent, child); }

}  // namespace

// For the program to refer to, or the linker may leave the library out.
extern "C" int fork_handlers_library_is_here() { return 1; }
