// SPDX-License-Identifier: MIT OR Apache-2.0
// fork while other threads use stdio. Who reads a line allocates with the FILE locked, who flushes all FILEs waits for each
// with the list of them locked, and fork waits for the list: an allocator whose locks fork has taken before closes the circle.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr double seconds = 1.0;
constexpr int least_forks = 10;  // however slow the machine is
constexpr std::size_t line_length = 20000;

std::atomic<bool> stop{false};
std::atomic<int> forks{0};
char path[] = "/tmp/terrace_fork_stdio_XXXXXX";

void* read_lines(void*) {
  std::FILE* const file = std::fopen(path, "r");
  check(file != nullptr, "fopen");
  while (!stop.load()) {
    char* line = nullptr;
    std::size_t room = 0;
    std::rewind(file);
    check(getline(&line, &room, file) == static_cast<ssize_t>(line_length), "getline");
    std::free(line);
    usleep(50);
  }
  std::fclose(file);
  return nullptr;
}

void* flush_all(void*) {
  while (!stop.load()) {
    std::fflush(nullptr);
    usleep(100);  // the lock of the list is not fair: fork wants it, too
  }
  return nullptr;
}

void* fork_all_the_time(void*) {
  for (const double end = now() + seconds; now() < end || forks.load() < least_forks;) {
    const pid_t pid = fork();
    check(pid >= 0, "fork");
    if (pid == 0) {
      no_longer_than_a_child_needs();
      std::FILE* const file = std::fopen(path, "r");  // the child has the list, and locks it
      check(file != nullptr, "fopen in the child");
      std::fflush(nullptr);
      std::fclose(file);
      check_and_free(filled(3000), 3000);
      _exit(0);
    }
    expect_exit(pid, 0);
    forks.fetch_add(1);
  }
  return nullptr;
}

}  // namespace

int main() {
  alarm(child_seconds);  // to hang is to die of SIGALRM
  const int fd = mkstemp(path);
  check(fd >= 0, "mkstemp");
  std::FILE* const file = fdopen(fd, "w");
  for (std::size_t i = 1; i < line_length; ++i) std::fputc('x', file);
  std::fputc('\n', file);
  std::fclose(file);
  pthread_t others[5];
  for (int i = 0; i < 4; ++i) check(pthread_create(&others[i], nullptr, read_lines, nullptr) == 0, "pthread_create");
  check(pthread_create(&others[4], nullptr, flush_all, nullptr) == 0, "pthread_create");
  pthread_t second{};
  check(pthread_create(&second, nullptr, fork_all_the_time, nullptr) == 0, "pthread_create");
  fork_all_the_time(nullptr);
  pthread_join(second, nullptr);
  stop.store(true);
  for (const pthread_t thread : others) pthread_join(thread, nullptr);
  unlink(path);
  ok();
}
