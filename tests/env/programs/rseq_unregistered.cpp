// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads whose program takes them out of rseq, before their first allocation and after, beside others that stay in it. In an
// area that the kernel no longer keeps, the slot reads as 0.
#include "../../support/rseq_calls.h"
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int rounds = 4000;
// Sizes of which all threads take and free a few at a time: they meet on the same words.
void churn(std::uint64_t seed) {
  Random random{seed};
  void* blocks[24];
  std::size_t sizes[24];
  for (int r = 0; r < rounds; ++r) {
    for (int i = 0; i < 24; ++i) blocks[i] = filled(sizes[i] = 16 + 16 * random.below(6));
    for (int i = 0; i < 24; ++i) check_and_free(blocks[i], sizes[i]);
  }
}

void* body(void* argument) {
  const auto number = reinterpret_cast<std::uintptr_t>(argument);
  if (number % 3 == 1) churn(number);  // its words have blocks when it leaves
  if (number % 3 != 2) unregister_libcs_rseq();
  churn(number + 100);
  return nullptr;
}

}  // namespace

int main() {
  constexpr std::uintptr_t count = 6;
  pthread_t threads[count];
  for (std::uintptr_t i = 0; i < count; ++i)
    check(pthread_create(&threads[i], nullptr, body, reinterpret_cast<void*>(i)) == 0, "pthread_create");
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  unregister_libcs_rseq();  // and the first thread of all
  churn(999);
  ok();
}
