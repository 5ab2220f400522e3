// SPDX-License-Identifier: MIT OR Apache-2.0
// A little of everything, for strange surroundings. Says on which rung, and which files are open afterwards. argv: rounds,
// threads, "locked" (all pages stay in memory, and the kernel does not take them back).
#include "env_test.h"

#include <fcntl.h>
#include <sys/mman.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

int rounds = 30;

void* body(void* seed) {
  WorkingSet set(reinterpret_cast<std::uintptr_t>(seed));
  for (int i = 0; i < rounds; ++i) set.step();
  return nullptr;
}

// Memory that was given back and comes again must be zero for calloc, whatever the kernel allows to be done with it.
void large_blocks() {
  for (int i = 0; i < 20; ++i) {
    const std::size_t size = 100000 + static_cast<std::size_t>(i) * 70000;
    check_and_free(filled(size), size);
    if (i % 5 == 0) malloc_trim(0);
    check_zeroed(size);
    void* p = filled(size);
    p = opaque(std::realloc(p, 3 * size));
    check(p != nullptr && intact(p, size), "realloc of a large block");
    std::free(p);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) rounds = std::atoi(argv[1]);
  const int threads = argc > 2 ? std::atoi(argv[2]) : 4;
  if (argc > 3 && std::strcmp(argv[3], "locked") == 0 && mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
  pthread_t others[16];
  for (int i = 0; i < threads; ++i) {
    check(pthread_create(&others[i], nullptr, body, reinterpret_cast<void*>(static_cast<std::uintptr_t>(i) + 1)) == 0,
          "pthread_create");
  }
  body(reinterpret_cast<void*>(99));
  for (int i = 0; i < threads; ++i) pthread_join(others[i], nullptr);
  large_blocks();
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) return 0;  // nobody listens
  char line[64];
  if (const char* name = rung()) {
    std::snprintf(line, sizeof line, "rung %s\n", name);
    say(STDOUT_FILENO, line);
  }
  int open_files = 0;
  for (int fd = 0; fd < 256; ++fd) open_files += fcntl(fd, F_GETFD) >= 0;
  std::snprintf(line, sizeof line, "open files %d\n", open_files);
  say(STDOUT_FILENO, line);
  ok();
}
