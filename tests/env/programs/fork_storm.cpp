// SPDX-License-Identifier: MIT OR Apache-2.0
// Two threads fork all the time while others allocate, so that locks are held. The child has the forking thread's blocks,
// allocates, starts a thread of its own, forks again, and ends in one of three ways.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr double seconds = 1.5;

void* allocate_in_thread(void*) {
  WorkingSet set(77);
  for (int i = 0; i < 5; ++i) set.step();
  return nullptr;
}

[[noreturn]] void child(WorkingSet& mine, std::uint64_t number) {
  no_longer_than_a_child_needs();
  for (int i = 0; i < 10; ++i) mine.step();
  if (number % 3 == 0) {
    pthread_t thread{};
    check(pthread_create(&thread, nullptr, allocate_in_thread, nullptr) == 0, "pthread_create in the child");
    mine.step();
    pthread_join(thread, nullptr);
  }
  if (number % 5 == 0) {
    const pid_t grandchild = fork();
    if (grandchild == 0) child(mine, 1);
    expect_exit(grandchild, 0);
  }
  if (number % 4 == 0) malloc_trim(0);
  mine.clear();
  for (int i = 0; i < 3; ++i) mine.step();
  if (number % 7 == 0) execl("/bin/true", "true", nullptr);
  if (number % 2 == 0) std::exit(0);
  _exit(0);
}

std::atomic<std::uint64_t> forks{0};
constexpr std::uint64_t least_forks = 20;  // however slow the machine is

void* fork_all_the_time(void* seed) {
  WorkingSet mine(reinterpret_cast<std::uintptr_t>(seed));
  for (const double end = now() + seconds; now() < end || forks.load() < least_forks;) {
    mine.step();
    const std::uint64_t number = forks.fetch_add(1);
    const pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) child(mine, number);
    expect_exit(pid, 0);
  }
  return nullptr;
}

}  // namespace

int main() {
  {
    const Allocating others(3);
    pthread_t second{};
    check(pthread_create(&second, nullptr, fork_all_the_time, reinterpret_cast<void*>(2)) == 0, "pthread_create");
    fork_all_the_time(reinterpret_cast<void*>(1));
    pthread_join(second, nullptr);
  }
  ok();
}
