// SPDX-License-Identifier: MIT OR Apache-2.0
// Tasks, at whose end all is freed. An idle process keeps next to nothing of one. Tasks that follow each other closely need the
// memory again: what goes back in each pause is limited by the time since it last did. argv: the size of their blocks.
#include "env_test.h"

#include <algorithm>
#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t mib = std::size_t{1} << 20, in_a_task = 40 * mib, kept_at_most = 6 * mib;
constexpr long tasks = 20, pages_per_ms = 8;

void* blocks[in_a_task / 100];

void task(std::size_t size, useconds_t microseconds) {
  const std::size_t count = in_a_task / size;
  for (std::size_t i = 0; i < count; ++i) {
    blocks[i] = opaque(std::malloc(size));
    check(blocks[i] != nullptr, "no block");
    std::memset(blocks[i], 1, size);
  }
  usleep(microseconds);
  std::for_each_n(blocks, count, std::free);
}

long faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void check_kept(std::size_t before) {
  const std::size_t kept = resident() - std::min(resident(), before);
  std::printf("after a task: %zu KiB resident\n", kept / 1024);
  check(kept <= kept_at_most, "a process that is idle after a task keeps what it needed");
}

// And a span, which goes back whole, once.
void check_faults(long during, double seconds) {
  const long most = static_cast<long>(seconds * 1000) * pages_per_ms + static_cast<long>(in_a_task) / sysconf(_SC_PAGESIZE);
  std::printf("pauses: %ld faults, at most %ld\n", during, most);
  check(during <= most, "more is given back in each pause than the time allows");
}

}  // namespace

int main(int argc, char** argv) {
  check(argc == 2, "which size?");
  const std::size_t size = std::strtoull(argv[1], nullptr, 10);
  check(size >= 100, "the table is too short");
  static char buffer[4096];
  std::setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  std::memset(blocks, 1, sizeof blocks);
  const std::size_t at_start = resident();
  task(size, 1'500'000);
  check_kept(at_start);
  for (int i = 0; i < 2; ++i) task(size, 20'000);
  const long before = faults();
  const double start = now();
  for (long i = 0; i < tasks; ++i) task(size, 20'000);
  check_faults(faults() - before, now() - start);
  std::fflush(stdout);
  ok();
}
