// SPDX-License-Identifier: MIT OR Apache-2.0
// A library whose fork handlers allocate, registered by its constructor: before those of an object that is initialised later,
// so "prepare" runs after that object's. glibc's malloc can be used in all three. "prepare" also waits for a thread that
// allocates, and forks itself now and then.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void* held = nullptr;
int forks = 0;
sem_t asked, answered;
std::atomic<bool> helper_runs{false};
thread_local bool within = false;

void churn() {
  for (std::size_t size = 8; size < 300000; size += size / 2) {
    void* volatile const p = std::malloc(size);
    if (p != nullptr) std::memset(p, 1, size);
    std::free(p);
  }
}

void* help(void*) {
  for (;;) {
    sem_wait(&asked);
    churn();
    sem_post(&answered);
  }
}

void fork_within() {
  within = true;
  const pid_t pid = fork();
  if (pid == 0) {
    churn();
    _exit(0);
  }
  int status = 1;
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) std::abort();
  within = false;
}

void prepare() {
  if (within) return;
  churn();
  held = std::malloc(3000);
  if (helper_runs.load()) {
    sem_post(&asked);
    sem_wait(&answered);
  }
  if (++forks % 4 == 0) fork_within();
}
void parent() {
  if (within) return;
  std::free(held);
  churn();
}
void child() {
  if (within) return;
  helper_runs.store(false);  // it is the parent's
  std::free(held);
  churn();
}

__attribute__((constructor)) void at_load() { pthread_atfork(prepare, parent, child); }

}  // namespace

// For the program to refer to, or the linker may leave the library out.
extern "C" int fork_handlers_library_is_here() { return 1; }

extern "C" void fork_handlers_library_starts_helper() {
  sem_init(&asked, 0, 0);
  sem_init(&answered, 0, 0);
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, help, nullptr) == 0) helper_runs.store(true);
}
