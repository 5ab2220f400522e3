// SPDX-License-Identifier: MIT OR Apache-2.0
// libterrace.so loaded late by a program that runs on libc's malloc: its own names work beside it, in threads older than it
// too. argv: the library.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

void* (*terrace_malloc)(std::size_t) = nullptr;
void (*terrace_free)(void*) = nullptr;
std::atomic<bool> loaded{false};

void* older_thread(void*) {
  while (!loaded.load(std::memory_order_acquire)) usleep(1000);
  for (int round = 0; round < 200; ++round) {
    for (std::size_t size = 1; size < 100000; size += size / 2 + 1) {
      auto* const p = static_cast<unsigned char*>(terrace_malloc(size));
      check(p != nullptr, "terrace_malloc");
      std::memset(p, round, size);
      check_and_free(filled(size), size);
      check(p[size - 1] == static_cast<unsigned char>(round), "damaged");
      terrace_free(p);
    }
  }
  return nullptr;
}

}  // namespace

int main(int, char** argv) {
  pthread_t threads[4];
  for (pthread_t& t : threads) check(pthread_create(&t, nullptr, older_thread, nullptr) == 0, "pthread_create");
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  terrace_malloc = reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "terrace_malloc"));
  terrace_free = reinterpret_cast<void (*)(void*)>(dlsym(library, "terrace_free"));
  check(terrace_malloc != nullptr && terrace_free != nullptr, "dlsym");
  loaded.store(true, std::memory_order_release);
  for (const pthread_t t : threads) pthread_join(t, nullptr);
  void* const outlives = terrace_malloc(100);
  dlclose(library);  // it stays: threads may still be in it
  std::memset(outlives, 1, 100);
  terrace_free(outlives);
  ok();
}
