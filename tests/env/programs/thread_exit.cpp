// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads that end in every way, with destructors that allocate and free, on small stacks too.
#include "env_test.h"

#include <climits>
#include <string>
#include <vector>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

pthread_key_t key;
std::atomic<int> key_destructors{0};
std::atomic<int> detached_ended{0};

// Sets the key again until the last round that POSIX promises.
void destroy(void* value) {
  auto* const round = static_cast<int*>(value);
  key_destructors.fetch_add(1);
  check_and_free(filled(777), 777);
  if (*round + 1 < PTHREAD_DESTRUCTOR_ITERATIONS) {
    auto* const next = static_cast<int*>(opaque(std::malloc(sizeof(int))));
    *next = *round + 1;
    pthread_setspecific(key, next);
  }
  std::free(round);
}

struct OfThread {
  std::vector<std::string> strings;
  ~OfThread() {
    strings.emplace_back(5000, 'x');
    for (int i = 0; i < 10; ++i)
      check_and_free(filled(static_cast<std::size_t>(i) * 100 + 1), static_cast<std::size_t>(i) * 100 + 1);
  }
};
thread_local OfThread of_thread;

void* body(void* argument) {
  const auto number = reinterpret_cast<std::uintptr_t>(argument);
  auto* const first = static_cast<int*>(opaque(std::malloc(sizeof(int))));
  *first = 0;
  pthread_setspecific(key, first);
  if (number % 4 != 3) of_thread.strings.emplace_back(300, 'y');
  WorkingSet set(number);
  set.step();
  if (number % 4 == 1) {
    set.clear();
    pthread_exit(nullptr);  // unwinds
  }
  if (number % 4 == 2) {
    set.clear();
    for (;;) pause();  // waits to be cancelled
  }
  return nullptr;
}

void* small_body(void*) {
  for (std::size_t size = 1; size < 300000; size += size / 3 + 1) check_and_free(filled(size), size);
  malloc_trim(0);
  void* p = nullptr;
  check(posix_memalign(&p, 4096, 10000) == 0, "posix_memalign");
  std::free(p);
  detached_ended.fetch_add(1);
  return nullptr;
}

}  // namespace

int main() {
  check(pthread_key_create(&key, destroy) == 0, "pthread_key_create");
  constexpr std::uintptr_t together = 8;
  constexpr std::uintptr_t rounds = 60;
  for (std::uintptr_t round = 0; round < rounds; ++round) {
    pthread_t threads[together];
    for (std::uintptr_t i = 0; i < together; ++i) {
      check(pthread_create(&threads[i], nullptr, body, reinterpret_cast<void*>(round * together + i)) == 0, "pthread_create");
    }
    for (std::uintptr_t i = 0; i < together; ++i) {
      if ((round * together + i) % 4 == 2) pthread_cancel(threads[i]);
      pthread_join(threads[i], nullptr);
    }
  }
  // A cancelled thread may end before it had a value.
  check(key_destructors.load() >= static_cast<int>(rounds * together * 3 / 4) * PTHREAD_DESTRUCTOR_ITERATIONS,
        "key destructors");

  constexpr int detached = 200;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  check(pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN)) == 0, "smallest stack");
  for (int i = 0; i < detached; ++i) {
    pthread_t thread{};
    while (pthread_create(&thread, &attributes, small_body, nullptr) != 0) usleep(1000);
  }
  for (const double end = now() + 30; detached_ended.load() < detached && now() < end;) usleep(1000);
  check(detached_ended.load() == detached, "detached threads");
  ok();
}
