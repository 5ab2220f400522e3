// SPDX-License-Identifier: MIT OR Apache-2.0
// A program with a clock_gettime of its own, which allocates, as libfaketime's does when it is called first. The allocator
// needs a clock when it starts and in its slow paths, and may not take this one.
#include "env_test.h"

#include <ctime>
#include <sys/syscall.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

std::atomic<int> calls{0};

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  ++calls;
  std::free(std::malloc(opaque(std::size_t{100})));
  return static_cast<int>(syscall(SYS_clock_gettime, clock, now));
}

int main() {
  alarm(60);  // one that waits for itself
  {
    const Allocating others(2);
    WorkingSet mine(7);
    for (int i = 0; i < 200; ++i) mine.step();
    for (int i = 0; i < 40; ++i) std::free(filled(std::size_t{1} << 22));
  }
  check(calls == 0, "the allocator asks the program's clock");
  timespec now = {};
  check(clock_gettime(CLOCK_MONOTONIC, &now) == 0 && calls == 1, "this program's clock_gettime is not the one that counts");
  ok();
}
