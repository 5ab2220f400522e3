// SPDX-License-Identifier: MIT OR Apache-2.0
// The library is loaded when other libraries have taken all keys of thread-specific data. It must leave their data alone and
// lose nothing of what its threads free.
#include "env_test.h"

#include <limits.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

void* (*their_malloc)(std::size_t) = nullptr;
void (*their_free)(void*) = nullptr;
void* value_of_key[PTHREAD_KEYS_MAX];

void check_keys(std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    check(pthread_getspecific(static_cast<pthread_key_t>(k)) == value_of_key[k], "somebody else's key was changed");
  }
}

void churn() {
  static constexpr int count = 500;
  void* blocks[count];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] = their_malloc(static_cast<std::size_t>(i) * 7 + 1);
      check(blocks[i] != nullptr, "malloc gave nothing");
      std::memset(blocks[i], i, static_cast<std::size_t>(i) * 7 + 1);
    }
    for (void* p : blocks) their_free(p);
  }
}

void* in_thread(void*) {
  churn();
  return nullptr;
}

}  // namespace

int main(int /*count*/, char** arguments) {
  std::size_t keys = 0;
  for (pthread_key_t key = 0; pthread_key_create(&key, nullptr) == 0; ++keys) {
    if (key >= PTHREAD_KEYS_MAX) continue;
    value_of_key[key] = &value_of_key[key];
    pthread_setspecific(key, value_of_key[key]);
  }
  check(keys > 0, "pthread_key_create");
  void* const library = dlopen(arguments[1], RTLD_NOW);
  check(library != nullptr, "dlopen");
  their_malloc = reinterpret_cast<void* (*)(std::size_t)>(dlsym(library, "terrace_malloc"));
  their_free = reinterpret_cast<void (*)(void*)>(dlsym(library, "terrace_free"));
  check(their_malloc != nullptr && their_free != nullptr, "dlsym");
  churn();
  check_keys(PTHREAD_KEYS_MAX);
  for (int i = 0; i < 50; ++i) {
    pthread_t thread{};
    check(pthread_create(&thread, nullptr, in_thread, nullptr) == 0, "pthread_create");
    pthread_join(thread, nullptr);
  }
  check_keys(PTHREAD_KEYS_MAX);
  ok();
}
