// SPDX-License-Identifier: MIT OR Apache-2.0
// A library to load and unload: allocates in its constructor and destructor, has thread-local objects and memory of its own.
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <string>
#include <vector>

namespace {

std::mutex mutex;  // of at_load
std::vector<std::string> at_load(100, std::string(200, 'x'));
void* kept = nullptr;
thread_local char of_thread[3000];
thread_local std::vector<int> vector_of_thread;

__attribute__((constructor)) void constructed() { kept = std::malloc(50000); }
__attribute__((destructor)) void destroyed() {
  std::free(kept);
  void* volatile const p = std::malloc(700);
  std::free(p);
}

}  // namespace

extern "C" {

void* plugin_allocate(std::size_t size) {
  std::memset(of_thread, 1, sizeof of_thread);
  vector_of_thread.push_back(static_cast<int>(size));
  {
    const std::lock_guard guard(mutex);
    at_load.emplace_back(size % 300, 'y');
  }
  void* const p = std::malloc(size);
  std::memset(p, 0x42, size);
  return p;
}

void plugin_free(void* p) { std::free(p); }

void* plugin_open(const char* file, int mode) { return dlopen(file, mode); }

}  // extern "C"
