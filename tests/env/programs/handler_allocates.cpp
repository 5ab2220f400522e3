// SPDX-License-Identifier: MIT OR Apache-2.0
// Signal handlers that allocate and free. POSIX does not allow it; where the thread that is interrupted does not allocate
// itself, it works with glibc and has to work here, however much other threads allocate.
#include "env_test.h"

#include <sys/time.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int wanted = 3000;
std::atomic<int> handled{0};
Random random{5};  // of the handler, which runs in one thread only

void handler(int) {
  const int kept = errno;
  const std::size_t size = random.size();
  void* const p = filled(size);
  check_zeroed(100);
  check_and_free(p, size);
  handled.fetch_add(1, std::memory_order_relaxed);
  errno = kept;
}

void mask(int how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGALRM);
  pthread_sigmask(how, &set, nullptr);
}

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_handler = handler;
  check(sigaction(SIGALRM, &action, nullptr) == 0, "sigaction");
  mask(SIG_BLOCK);  // the threads inherit it
  {
    const Allocating others(3);
    mask(SIG_UNBLOCK);
    const itimerval timer = {.it_interval = {0, 200}, .it_value = {0, 200}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    const double end = now() + 60;
    while (handled.load(std::memory_order_relaxed) < wanted && now() < end) pause();
    const itimerval off = {};
    setitimer(ITIMER_REAL, &off, nullptr);
    mask(SIG_BLOCK);
  }
  check(handled.load() >= wanted, "too few signals");
  ok();
}
