// SPDX-License-Identifier: MIT OR Apache-2.0
// Children of vfork allocate in their parent's memory while other threads of it do so too, then end or become another program.
// POSIX does not allow that; programs do it, and glibc's malloc survives it.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr double seconds = 1.5;
constexpr int left_behind = 20;

struct Shared {
  void* volatile blocks[left_behind];
};

// Never inlined: its frame is the one that parent and child share.
__attribute__((noinline)) pid_t child_that_allocates(Shared& shared, bool executes) {
  const pid_t pid = vfork();
  if (pid != 0) return pid;
  for (int i = 0; i < left_behind; ++i) {
    void* const p = filled(static_cast<std::size_t>(i) * 1000 + 16);
    check_and_free(filled(3000), 3000);
    shared.blocks[i] = p;
  }
  check_and_free(filled(300000), 300000);
  if (executes) execl("/bin/true", "true", nullptr);
  _exit(0);
}

std::atomic<int> children{0};
constexpr int least_children = 20;  // however slow the machine is

void* vfork_all_the_time(void*) {
  Shared shared = {};
  WorkingSet mine(3);
  for (const double end = now() + seconds; now() < end || children.load() < least_children;) {
    mine.step();
    const pid_t pid = child_that_allocates(shared, children.fetch_add(1) % 2 == 0);
    check(pid > 0, "vfork");
    expect_exit(pid, 0);
    for (int i = 0; i < left_behind; ++i) check_and_free(shared.blocks[i], static_cast<std::size_t>(i) * 1000 + 16);
  }
  return nullptr;
}

}  // namespace

int main() {
  {
    const Allocating others(3);
    pthread_t second{};
    check(pthread_create(&second, nullptr, vfork_all_the_time, nullptr) == 0, "pthread_create");
    vfork_all_the_time(nullptr);
    pthread_join(second, nullptr);
  }
  ok();
}
