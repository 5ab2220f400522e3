// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocates before main: in .preinit_array, in constructors of all priorities, in a resolver of the dynamic linker (in the
// library). What was allocated then is freed by later ones.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

extern "C" int chosen_by_resolver();
extern "C" void free_what_the_resolver_has();

namespace {

void* from_preinit = nullptr;
void* from_first = nullptr;
void* from_default = nullptr;
int stage = 0;

void preinit(int, char**, char**) {
  from_preinit = filled(1000);
  check_and_free(filled(300000), 300000);
  stage = 1;
}
__attribute__((section(".preinit_array"), used)) void (*const preinit_entry)(int, char**, char**) = preinit;

__attribute__((constructor(101))) void first() {
  check(stage == 1, "preinit_array first");
  check_and_free(from_preinit, 1000);
  from_first = filled(100);
  stage = 2;
}

struct Early {
  void* p = filled(64);
  ~Early() { check_and_free(p, 64); }
};
__attribute__((init_priority(101))) Early early;

__attribute__((constructor)) void by_default() {
  check(stage == 2, "priority 101 before the rest");
  check_and_free(from_first, 100);
  from_default = filled(40000);
  // A thread and a child before main.
  pthread_t thread{};
  check(pthread_create(
            &thread, nullptr,
            [](void*) -> void* {
              check_and_free(filled(10000), 10000);
              return nullptr;
            },
            nullptr) == 0,
        "pthread_create");
  pthread_join(thread, nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    no_longer_than_a_child_needs();
    check_and_free(from_default, 40000);
    _exit(0);
  }
  expect_exit(pid, 0);
  stage = 3;
}

}  // namespace

int main() {
  check(stage == 3, "all constructors");
  check_and_free(from_default, 40000);
  check(chosen_by_resolver() == 1, "the resolver allocated");
  free_what_the_resolver_has();
  WorkingSet set(1);
  set.step();
  set.clear();
  ok();
}
