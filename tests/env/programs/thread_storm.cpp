// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads are made and end all the time, four at once; each frees what an earlier one has left and leaves something itself. A
// quarter is cancelled between two steps.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int rounds = 1500;
constexpr int together = 4;
constexpr int places = 64;

struct Left {
  void* block;
  std::size_t size;
};
// A pointer to a Left that somebody else frees, and the block in it.
std::atomic<Left*> left[places];

void leave(Random& random) {
  auto* const mine = static_cast<Left*>(filled(sizeof(Left)));
  mine->size = random.size();
  mine->block = filled(mine->size);
  // acq_rel: what is taken out was filled by another thread, what is put in is filled
  Left* const before = left[random.below(places)].exchange(mine, std::memory_order_acq_rel);
  if (before == nullptr) return;
  check_and_free(before->block, before->size);
  std::free(before);
}

void clear(void* set) { static_cast<WorkingSet*>(set)->clear(); }

void* body(void* seed) {
  Random random{reinterpret_cast<std::uintptr_t>(seed)};
  WorkingSet set(random.below(1000000));
  pthread_cleanup_push(clear, &set);
  for (int i = 0; i < 3; ++i) {
    set.step();
    leave(random);
    pthread_testcancel();
  }
  pthread_cleanup_pop(0);
  return nullptr;
}

}  // namespace

int main() {
  for (std::uintptr_t round = 0; round < rounds; ++round) {
    pthread_t threads[together];
    for (std::uintptr_t i = 0; i < together; ++i) {
      check(pthread_create(&threads[i], nullptr, body, reinterpret_cast<void*>(round * together + i)) == 0, "pthread_create");
    }
    pthread_cancel(threads[round % together]);
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  }
  ok();
}
