// SPDX-License-Identifier: MIT OR Apache-2.0
// fork between lock_arenas() and its counterparts: the child finds whole arenas and free locks, whatever other threads did.
#include "vmem/fork.h"

#include "arena_fixture.h"
#include "arena_innards.h"

#include <atomic>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace terrace::vmem {
namespace {

// What the child returns: 0 is good.
int in_child(const std::function<int()>& child) {
  lock_arenas();
  const pid_t pid = fork();
  if (pid == 0) {
    reset_arenas_after_fork();
    _exit(child());
  }
  unlock_arenas();
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

int uses(const OwnArena& a) {
  if (a.arena().check_invariants() != nullptr) return 1;
  const std::uintptr_t p = a.alloc(3);
  if (p == 0) return 2;
  a.free(p, 3);
  return a.arena().check_invariants() == nullptr ? 0 : 3;
}

TEST(Fork, the_child_may_use_all_arenas_and_the_parent_goes_on) {
  const OwnArena a(1, 1000, 1), b(1, 1000, 1, 8), c(1, 1000, 1);
  EXPECT_EQ(in_child([&] {
              const OwnArena made(1, 1000, 1);
              return uses(a) + uses(b) + uses(c) + uses(made);
            }),
            0);
  EXPECT_EQ(uses(a) + uses(b) + uses(c), 0);
  const OwnArena made(1, 1000, 1);
  EXPECT_EQ(uses(made), 0);
}

TEST(Fork, amid_the_work_of_another_thread) {
  const OwnArena source(1 << 20, 1 << 20, 64);
  const OwnArena a(vmem_create("a", nullptr, 0, 1, vmem_alloc, vmem_free, source, 8, VM_NOSLEEP));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    std::vector<Found> pieces;
    for (std::size_t i = 0; !stop.load(); ++i) {
      pieces.push_back({a.alloc(1 + i % 30), 1 + i % 30});
      if (pieces.size() < 50) continue;
      for (const Found& f : pieces) a.free(f.start, f.size);
      pieces.clear();
    }
    for (const Found& f : pieces) a.free(f.start, f.size);
  });
  for (int i = 0; i < 100; ++i) ASSERT_EQ(in_child([&] { return uses(a) + uses(source); }), 0);
  stop.store(true);
  other.join();
}

TEST(Fork, walks_of_other_threads_are_forgotten) {
  const OwnArena a(1, 10, 1);
  struct Meeting {
    std::atomic<bool> inside{false}, leave{false};
  } meeting;
  std::thread walker([&] {
    vmem_walk(
        a, static_cast<int>(VMEM_FREE | VMEM_REENTRANT),
        [](void* m, void*, std::size_t) {
          static_cast<Meeting*>(m)->inside.store(true);
          while (!static_cast<Meeting*>(m)->leave.load()) std::this_thread::yield();
        },
        &meeting);
  });
  while (!meeting.inside.load()) std::this_thread::yield();
  EXPECT_TRUE(ArenaInnards::has_walkers(a.arena()));
  EXPECT_EQ(in_child([&] { return ArenaInnards::has_walkers(a.arena()) ? 10 : uses(a); }), 0);
  EXPECT_TRUE(ArenaInnards::has_walkers(a.arena()));
  meeting.leave.store(true);
  walker.join();
  EXPECT_FALSE(ArenaInnards::has_walkers(a.arena()));
}

TEST(Fork, a_walk_that_forks_goes_on_in_the_child) {
  const OwnArena a(1, 10, 1);
  for (int i = 0; i < 10; ++i) ASSERT_NE(a.alloc(1), 0U);
  struct Forked {
    vmem_t* arena;
    int visits = 0;
    pid_t child = -1;
  } forked{.arena = a};
  const auto visit = [](void* argument, void* start, std::size_t size) {
    auto& f = *static_cast<Forked*>(argument);
    if (++f.visits == 5) {
      lock_arenas();
      f.child = fork();
      f.child == 0 ? reset_arenas_after_fork() : unlock_arenas();
    }
    if (f.child == 0) vmem_free(f.arena, start, size);
  };
  vmem_walk(a, static_cast<int>(VMEM_ALLOC | VMEM_REENTRANT), visit, &forked);
  if (forked.child == 0) _exit(forked.visits == 10 && vmem_size(a, VMEM_ALLOC) == 4 ? 0 : 1);
  int status = -1;
  waitpid(forked.child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC), 10U);
  for (std::uintptr_t i = 1; i <= 10; ++i) a.free(i, 1);
}

}  // namespace
}  // namespace terrace::vmem
