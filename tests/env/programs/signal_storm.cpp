// SPDX-License-Identifier: MIT OR Apache-2.0
// Signals hit threads in the middle of malloc and free, thousands per second, on the ordinary and on an alternate stack. The
// handler does not allocate.
#include "env_test.h"

#include <sched.h>
#include <sys/time.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int threads = 4;
std::atomic<std::uint64_t> handled{0};

void handler(int) {
  const int kept = errno;
  volatile char stack[1000];
  for (volatile char& c : stack) c = 1;
  if (handled.fetch_add(1, std::memory_order_relaxed) % 16 == 0) sched_yield();
  errno = kept;
}

constexpr int least_signals = 1000;  // however slow the machine is

void install(int signal, int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  check(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

}  // namespace

int main() {
  static char alternate[64 * 1024];
  const stack_t stack = {.ss_sp = alternate, .ss_flags = 0, .ss_size = sizeof alternate};
  check(sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  install(SIGUSR1, 0);
  install(SIGALRM, SA_ONSTACK);
  install(SIGPROF, SA_RESTART);
  {
    const Allocating others(threads);
    const itimerval timer = {.it_interval = {0, 100}, .it_value = {0, 100}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    const itimerval profile = {.it_interval = {0, 1000}, .it_value = {0, 1000}};
    setitimer(ITIMER_PROF, &profile, nullptr);
    WorkingSet mine(12);
    const double end = now() + 1.5;
    for (int i = 0; now() < end || handled.load() < least_signals; ++i) {
      pthread_kill(others.thread(i % threads), SIGUSR1);
      if (i % 20 == 0) mine.step();
    }
    const itimerval off = {};
    setitimer(ITIMER_REAL, &off, nullptr);
    setitimer(ITIMER_PROF, &off, nullptr);
  }
  ok();
}
