// SPDX-License-Identifier: MIT OR Apache-2.0
// A child of vfork calls fork, beside threads that allocate: its child has a copy of the parent's heap, and a thread whose rseq
// area no kernel keeps up to date. All three go on allocating, the grandchild beside threads of its own.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int rounds = 6;
constexpr int blocks_of_a_child = 2000;

void churn() {
  void* blocks[32];
  for (int i = 0; i < blocks_of_a_child / 32; ++i) {
    for (void*& p : blocks) p = filled(64);
    for (void* p : blocks) check_and_free(p, 64);
  }
  check_and_free(filled(300000), 300000);
}

void work() {
  WorkingSet set(5);
  for (int i = 0; i < 5; ++i) set.step();
  churn();
}

__attribute__((noinline)) pid_t vfork_and_allocate() {
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  churn();
  _exit(0);
}

[[noreturn]] void grandchild(WorkingSet& mine, int round) {
  no_longer_than_a_child_needs();
  for (int i = 0; i < 5; ++i) mine.step();
  churn();
  {
    const Allocating others(3);  // on all slots, that of a thread without an rseq area among them
    for (int i = 0; i < 8; ++i) churn();
  }
  if (round % 3 == 0) expect_exit(vfork_and_allocate(), 0);
  if (round % 3 == 1) {
    const pid_t further = fork();
    if (further == 0) {
      work();
      _exit(0);
    }
    expect_exit(further, 0);
  }
  churn();
  mine.clear();
  if (round % 2 == 0) std::exit(0);
  _exit(0);
}

// Never inlined: its frame is shared by those who return from vfork() in it.
__attribute__((noinline)) pid_t child(WorkingSet& mine, int round) {
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  churn();
  const pid_t next = fork();
  if (next == 0) grandchild(mine, round);
  churn();
  expect_exit(next, 0);
  churn();
  _exit(0);
}

void rounds_of(WorkingSet& mine) {
  for (int round = 0; round < rounds; ++round) {
    mine.step();
    const pid_t pid = child(mine, round);
    check(pid > 0, "vfork");
    expect_exit(pid, 0);
    churn();
  }
}

}  // namespace

int main() {
  WorkingSet mine(9);
  rounds_of(mine);  // alone, then beside others
  {
    const Allocating others(2);
    rounds_of(mine);
  }
  ok();
}
