// SPDX-License-Identifier: MIT OR Apache-2.0
// Loads, uses from threads and unloads a library while others allocate. argv: the library.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

using Allocate = void* (*)(std::size_t);

void* use(void* function) {
  auto* const allocate = reinterpret_cast<Allocate>(function);
  for (std::size_t size = 1; size < 5000; size += 333) std::free(allocate(size));
  return nullptr;
}

}  // namespace

int main(int, char** argv) {
  {
    const Allocating others(2);
    WorkingSet mine(11);
    for (int round = 0; round < 60; ++round) {
      void* const library = dlopen(argv[1], RTLD_NOW | (round % 2 == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
      check(library != nullptr, "dlopen");
      auto* const allocate = reinterpret_cast<Allocate>(dlsym(library, "plugin_allocate"));
      check(allocate != nullptr, "dlsym");
      void* outlives[20];
      for (int i = 0; i < 20; ++i) outlives[i] = allocate(static_cast<std::size_t>(i) * 500 + 1);
      pthread_t threads[4];
      for (pthread_t& t : threads)
        check(pthread_create(&t, nullptr, use, reinterpret_cast<void*>(allocate)) == 0, "pthread_create");
      mine.step();
      for (const pthread_t t : threads) pthread_join(t, nullptr);
      dlclose(library);
      // Not its memory: the library is gone, what it allocated is not.
      for (void* p : outlives) {
        check(*static_cast<unsigned char*>(p) == 0x42, "a block of the library was damaged");
        std::free(p);
      }
      check(dlopen("/nonexistent.so", RTLD_NOW) == nullptr && dlerror() != nullptr, "dlopen of nothing");
    }
  }
  ok();
}
