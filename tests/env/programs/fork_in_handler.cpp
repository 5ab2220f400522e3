// SPDX-License-Identifier: MIT OR Apache-2.0
// A handler forks in a thread that it has interrupted anywhere, inside the allocator too, while other threads allocate. POSIX
// and glibc's malloc do not allow it; here the parent goes on, and the child may end at once.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int wanted = 300;
volatile sig_atomic_t children = 0;

void fork_here(int /*signal*/) {
  const int saved = errno;
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  check(pid > 0, "fork");
  expect_exit(pid, 0);
  children = children + 1;
  errno = saved;
}

// Most of its time is spent under locks: large blocks, given back at once.
void* work(void*) {
  WorkingSet mine(7);
  while (children < wanted) {
    for (int i = 0; i < 20; ++i) check_and_free(filled(300000), 300000);
    mine.step();
    malloc_trim(0);
  }
  return nullptr;
}

}  // namespace

int main() {
  alarm(child_seconds);  // to hang is to die of SIGALRM
  struct sigaction action {};
  action.sa_handler = fork_here;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  {
    const Allocating others(1);
    pthread_t thread{};
    check(pthread_create(&thread, nullptr, work, nullptr) == 0, "pthread_create");
    for (int sent = 0; children < wanted; ++sent) {
      pthread_kill(thread, SIGUSR1);
      while (children <= sent && children < wanted) usleep(50);
    }
    pthread_join(thread, nullptr);
  }
  ok();
}
