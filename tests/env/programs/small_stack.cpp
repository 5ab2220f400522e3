// SPDX-License-Identifier: MIT OR Apache-2.0
// The first call of the library comes from a thread with the smallest stack that there is, and so does everything after it:
// refills, ticks, draining. The library is loaded by dlopen, since a preloaded one has been called before any thread runs.
#include "env_test.h"

#include <limits.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

void* (*their_malloc)(std::size_t) = nullptr;
void (*their_free)(void*) = nullptr;
int (*their_trim)(std::size_t) = nullptr;

constexpr int count = 3000;
void* blocks[count];

void* work(void*) {
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] = their_malloc(static_cast<std::size_t>(i) * 11 % 9000 + 1);
      check(blocks[i] != nullptr, "malloc gave nothing");
      *static_cast<char*>(blocks[i]) = 1;
    }
    for (int i = 0; i < count; ++i) their_free(blocks[i * 7 % count]);
    void* const large = their_malloc(500000);
    their_free(large);
    if (round % 4 == 3) their_trim(0);
    usleep(2000);  // time for a tick
  }
  return nullptr;
}

void run_on_smallest_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  check(pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(sysconf(_SC_THREAD_STACK_MIN))) == 0, "stack size");
  pthread_t thread{};
  check(pthread_create(&thread, &attributes, work, nullptr) == 0, "pthread_create");
  pthread_join(thread, nullptr);
}

}  // namespace

int main(int /*count*/, char** arguments) {
  void* const library = dlopen(arguments[1], RTLD_NOW);
  check(library != nullptr, "dlopen");
  their_malloc = reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "terrace_malloc"));
  their_free = reinterpret_cast<void (*)(void*)>(dlsym(library, "terrace_free"));
  their_trim = reinterpret_cast<int (*)(std::size_t)>(dlsym(library, "terrace_malloc_trim"));
  check(their_malloc != nullptr && their_free != nullptr && their_trim != nullptr, "dlsym");
  for (int i = 0; i < 2; ++i) run_on_smallest_stack();
  ok();
}
