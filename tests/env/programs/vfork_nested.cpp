// SPDX-License-Identifier: MIT OR Apache-2.0
// A child of vfork that calls vfork itself, and goes on allocating in its grandparent's memory when its own child is gone;
// beside threads that allocate and threads that have such children. A handler that allocates, and one that calls vfork, in the
// child. Last, vfork in the destructor of thread-specific data that runs after all others: the thread must not begin anew.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr double seconds = 1.0;
constexpr int least_children = 20;  // however slow the machine is
constexpr int blocks_of_a_child = 2000;

std::atomic<int> children{0};

void churn() {
  void* blocks[32];
  for (int i = 0; i < blocks_of_a_child / 32; ++i) {
    for (void*& p : blocks) p = filled(64);
    for (void* p : blocks) check_and_free(p, 64);
  }
}

// Never inlined: its frame is shared by those who return from vfork() in it.
__attribute__((noinline)) pid_t grandchild(bool executes) {
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  check_and_free(filled(64), 64);
  if (executes) execl("/bin/true", "true", nullptr);
  _exit(0);
}

void on_signal(int signal) {
  check_and_free(filled(48), 48);
  if (signal == SIGUSR2) expect_exit(grandchild(false), 0);
}

__attribute__((noinline)) pid_t child(bool executes) {
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  expect_exit(grandchild(!executes), 0);
  churn();
  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGUSR2);
  churn();
  if (executes) execl("/bin/true", "true", nullptr);
  _exit(0);
}

void* vfork_all_the_time(void*) {
  WorkingSet mine(3);
  for (const double end = now() + seconds; now() < end || children.load() < least_children;) {
    mine.step();
    const pid_t pid = child(children.fetch_add(1) % 2 == 0);
    check(pid > 0, "vfork");
    expect_exit(pid, 0);
  }
  return nullptr;
}

pthread_key_t last_key;

void at_thread_exit(void* round) {
  const auto n = reinterpret_cast<std::uintptr_t>(round);
  if (n < PTHREAD_DESTRUCTOR_ITERATIONS) {
    pthread_setspecific(last_key, reinterpret_cast<void*>(n + 1));
    return;
  }
  expect_exit(grandchild(false), 0);
  churn();
}

void* end_late(void*) {
  pthread_setspecific(last_key, reinterpret_cast<void*>(1));
  churn();
  return nullptr;
}

void end_threads(int n) {
  for (int i = 0; i < n; ++i) {
    pthread_t thread{};
    check(pthread_create(&thread, nullptr, end_late, nullptr) == 0, "pthread_create");
    pthread_join(thread, nullptr);
  }
}

long resident_kib() {
  char text[64] = {};
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  check(std::fgets(text, sizeof text, file) != nullptr, "statm");
  std::fclose(file);
  return std::atol(std::strchr(text, ' ')) * (sysconf(_SC_PAGESIZE) / 1024);
}

}  // namespace

int main() {
  alarm(2 * child_seconds);
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, on_signal);
  {
    const Allocating others(3);
    pthread_t second{};
    check(pthread_create(&second, nullptr, vfork_all_the_time, nullptr) == 0, "pthread_create");
    vfork_all_the_time(nullptr);
    pthread_join(second, nullptr);
  }
  churn();
  check(pthread_key_create(&last_key, at_thread_exit) == 0, "pthread_key_create");
  end_threads(20);
  const long before = resident_kib();
  constexpr int threads = 400;
  end_threads(threads);
  check(resident_kib() - before < threads * 4, "each thread leaves something behind");
  ok();
}
