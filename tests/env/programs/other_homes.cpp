// SPDX-License-Identifier: MIT OR Apache-2.0
// Memory is short, and what blocks below a cache line there are wait for another slot, in its depot and its slabs. They are
// handed out before malloc refuses, and come back like any: freed here, in any order, together with the own ones, and drained.
#include "env_test.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int theirs_count = 20000, kept_every = 500;
constexpr std::size_t most = 4000000;
constexpr std::size_t size = 32;
constexpr int neighbourhood = 16;  // bits: slabs are not smaller
constexpr std::size_t foreign_enough = 20, freed_between = 500;

void* theirs[theirs_count];
void** mine;
std::atomic<bool> done{false}, leave{false};

// On the cpus that are to be had, the nth: another slot where slots are cpus.
void move_to(int nth) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0, left = nth; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || left-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

void* other(void*) {
  move_to(1);
  for (void*& p : theirs) p = filled(size);
  for (int i = 0; i < theirs_count; ++i) {  // some stay, and so do their slabs
    if (i % kept_every != 0) check_and_free(theirs[i], size);
  }
  done.store(true);
  while (!leave.load()) usleep(1000);
  for (int i = 0; i < theirs_count; i += kept_every) check_and_free(theirs[i], size);
  return nullptr;
}

bool is_near_theirs(const void* p) {
  const auto at = reinterpret_cast<std::uintptr_t>(p) >> neighbourhood;
  for (int i = 0; i < theirs_count; i += kept_every) {
    if (reinterpret_cast<std::uintptr_t>(theirs[i]) >> neighbourhood == at) return true;
  }
  return false;
}

// Takes what there is, but for `after` blocks of the other's.
std::size_t take_all(std::size_t n, std::size_t after) {
  std::size_t foreign = 0;
  for (; n < most && foreign < after; ++n) {
    mine[n] = opaque(std::malloc(size));
    if (mine[n] == nullptr) break;
    std::memset(mine[n], mark_of(size), size);
    if (is_near_theirs(mine[n])) ++foreign;
  }
  check(n < most, "the limit does nothing");
  return n;
}

}  // namespace

int main() {
  alarm(2 * child_seconds);
  mine = static_cast<void**>(
      mmap(nullptr, most * sizeof(void*), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  check(mine != MAP_FAILED, "mmap");
  move_to(0);
  std::free(opaque(std::malloc(size)));
  pthread_t thread{};
  check(pthread_create(&thread, nullptr, other, nullptr) == 0, "pthread_create");
  while (!done.load()) usleep(1000);
  const rlimit nothing_more{.rlim_cur = 1, .rlim_max = RLIM_INFINITY};
  check(setrlimit(RLIMIT_AS, &nothing_more) == 0, "setrlimit");
  // With some of them in hand, blocks of the own home come back, and all that is held is drained.
  std::size_t n = take_all(0, foreign_enough);
  for (std::size_t i = 0; i < freed_between && n > foreign_enough; ++i) {
    check_and_free(mine[i], size);
    mine[i] = mine[--n];
  }
  malloc_trim(0);
  n = take_all(n, most);
  for (std::size_t i = 0; i < n; ++i) check_and_free(mine[i], size);
  malloc_trim(0);
  leave.store(true);
  pthread_join(thread, nullptr);
  ok();
}
