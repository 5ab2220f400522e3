// SPDX-License-Identifier: MIT OR Apache-2.0
// The first thread ends, the others go on; the last one ends the process.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

void* from_main = nullptr;
pthread_t main_thread;
pthread_key_t key;

void destroy(void* p) { check_and_free(p, 900); }

void* go_on(void*) {
  pthread_join(main_thread, nullptr);
  WorkingSet set(4);
  for (int i = 0; i < 200; ++i) set.step();
  check_and_free(from_main, 12345);
  set.clear();
  {
    const Allocating more(3);
    for (int i = 0; i < 100; ++i) set.step();
  }
  const pid_t pid = fork();
  if (pid == 0) {
    no_longer_than_a_child_needs();
    set.step();
    _exit(0);
  }
  expect_exit(pid, 0);
  ok();
  std::exit(0);
}

}  // namespace

int main() {
  main_thread = pthread_self();
  from_main = filled(12345);
  pthread_key_create(&key, destroy);
  pthread_setspecific(key, filled(900));
  pthread_t thread{};
  check(pthread_create(&thread, nullptr, go_on, nullptr) == 0, "pthread_create");
  pthread_exit(nullptr);
}
