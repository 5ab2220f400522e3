// SPDX-License-Identifier: MIT OR Apache-2.0
// Fork handlers that allocate: of a library that was initialised before, of the program, registered before and after threads.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

extern "C" int fork_handlers_library_is_here();
extern "C" void fork_handlers_library_starts_helper();

namespace {

void* held[2];  // a handler of the library forks in its turn
int depth = 0;
void prepare() { held[depth++] = filled(500); }
void parent() { check_and_free(held[--depth], 500); }
void child() { check_and_free(held[--depth], 500); }

}  // namespace

int main() {
  check(fork_handlers_library_is_here() == 1, "the library");
  fork_handlers_library_starts_helper();
  pthread_atfork(prepare, parent, child);
  {
    const Allocating others(3);
    WorkingSet mine(5);
    for (int i = 0; i < 40; ++i) {
      mine.step();
      alarm(child_seconds);  // a deadlock in `prepare` is one of the parent
      const pid_t pid = fork();
      check(pid >= 0, "fork");
      if (pid == 0) {
        no_longer_than_a_child_needs();
        mine.step();
        _exit(0);
      }
      expect_exit(pid, 0);
    }
  }
  ok();
}
