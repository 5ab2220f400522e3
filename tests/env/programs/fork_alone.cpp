// SPDX-License-Identifier: MIT OR Apache-2.0
// fork in a process of one thread. First with nothing going on: what does the child touch? Then in a signal handler that
// interrupts the allocator anywhere, slow paths included: the child returns from the handler and goes on where it was.
//
// Prints "pages N": minor faults of a child that ends at once, the median of many.
#include "env_test.h"

#include <algorithm>
#include <sys/resource.h>
#include <sys/time.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int forks_to_measure = 51;
constexpr int steps_of_a_child = 20;
constexpr double seconds = 1.0;
constexpr int least_children = 20;  // however slow the machine is

volatile sig_atomic_t is_child = 0;
volatile sig_atomic_t forked = 0;  // the child that was not waited for yet

void fork_here(int /*signal*/) {
  if (forked != 0 || is_child != 0) return;
  const pid_t pid = fork();
  if (pid == 0) is_child = 1;
  if (pid > 0) forked = pid;
}

long faults_of_children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_minflt;
}

long pages_of_a_child() {
  long faults[forks_to_measure];
  for (long& f : faults) {
    const long before = faults_of_children();
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    expect_exit(pid, 0);
    f = faults_of_children() - before;
  }
  std::nth_element(faults, faults + forks_to_measure / 2, faults + forks_to_measure);
  return faults[forks_to_measure / 2];
}

void interrupt_every(int microseconds) {
  const itimerval timer{.it_interval = {.tv_sec = 0, .tv_usec = microseconds},
                        .it_value = {.tv_sec = 0, .tv_usec = microseconds}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

int main() {
  WorkingSet mine(5);
  for (int i = 0; i < 200; ++i) mine.step();
  const long pages = pages_of_a_child();

  struct sigaction action {};
  action.sa_handler = fork_here;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  interrupt_every(300);
  int children = 0;
  int steps_left = steps_of_a_child;
  for (const double end = now() + seconds; now() < end || children < least_children;) {
    mine.step();
    if (is_child != 0 && --steps_left == 0) {
      mine.clear();
      _exit(0);
    }
    if (forked != 0) {
      expect_exit(static_cast<pid_t>(forked), 0);
      forked = 0;
      ++children;
    }
  }
  interrupt_every(0);
  if (is_child != 0) _exit(0);
  if (forked != 0) expect_exit(static_cast<pid_t>(forked), 0);
  std::printf("pages %ld\n", pages);
  std::fflush(stdout);
  ok();
}
