// SPDX-License-Identifier: MIT OR Apache-2.0
// A program that uses rseq itself and has told libc to leave it alone (glibc.pthread.rseq=0): its registrations must succeed,
// before a thread's first allocation and after it.
#include "../../support/rseq_calls.h"
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

struct alignas(32) Area {
  std::uint32_t words[8];
};
thread_local Area area;

void take_rseq(const char* when) {
  const int error = register_rseq(&area);
  if (error == ENOSYS) {
    say(STDOUT_FILENO, "no rseq here\n");
    _exit(77);
  }
  if (error != 0) fail(when);
}

void* body(void* argument) {
  const auto number = reinterpret_cast<std::uintptr_t>(argument);
  WorkingSet set(number);
  if (number % 2 == 0) take_rseq("a thread that registers before its first allocation");
  for (int i = 0; i < 200; ++i) set.step();
  if (number % 2 == 1) take_rseq("a thread that registers after its first allocation");
  for (int i = 0; i < 200; ++i) set.step();
  check(static_cast<std::int32_t>(area.words[1]) >= 0, "the area is not kept up to date");
  return nullptr;
}

}  // namespace

int main() {
  std::free(filled(100));
  take_rseq("the first thread, after its first allocation");
  constexpr std::uintptr_t count = 4;
  pthread_t threads[count];
  for (std::uintptr_t i = 0; i < count; ++i)
    check(pthread_create(&threads[i], nullptr, body, reinterpret_cast<void*>(i)) == 0, "pthread_create");
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  if (const char* const name = rung()) {
    say(STDOUT_FILENO, "rung ");
    say(STDOUT_FILENO, name);
    say(STDOUT_FILENO, "\n");
  }
  ok();
}
