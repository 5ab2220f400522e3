// SPDX-License-Identifier: MIT OR Apache-2.0
// Thousands of threads that hold blocks at the same time. argv: how many; then, if wanted, how many KiB may be resident for
// each while it lives, and after its end. Ends with 77 where there can not be so many.
#include "env_test.h"

#include <climits>
#include <fcntl.h>
#include <semaphore.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t sizes[] = {24, 200, 1000, 5000};
constexpr int most = 20000;
pthread_t threads[most];
sem_t holding, go_on;

void* body(void*) {
  void* blocks[4];
  for (int i = 0; i < 4; ++i) blocks[i] = filled(sizes[i]);
  sem_post(&holding);
  while (sem_wait(&go_on) != 0) {
  }
  for (int i = 0; i < 4; ++i) check_and_free(blocks[i], sizes[i]);
  return nullptr;
}

long resident_kib() {
  char text[128] = {};
  const int fd = open("/proc/self/statm", O_RDONLY);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return -1;
  close(fd);
  return std::atol(std::strchr(text, ' ')) * (sysconf(_SC_PAGESIZE) / 1024);
}

void check_resident(const char* when, long before, int count, const char* most) {
  if (most == nullptr) return;
  const long each = (resident_kib() - before) / count;
  char line[100];
  std::snprintf(line, sizeof line, "%s: %ld KiB for each thread\n", when, each);
  say(STDOUT_FILENO, line);
  check(each <= std::atol(most), "more is resident for each thread than there should be");
}

}  // namespace

int main(int count, char** argv) {
  const int wanted = std::atoi(argv[1]);
  check(wanted <= most, "too many");
  sem_init(&holding, 0, 0);
  sem_init(&go_on, 0, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  check(pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN) + 16384) == 0, "stack size");
  const char* const alive = count > 2 ? argv[2] : nullptr;
  const char* const gone = count > 3 ? argv[3] : nullptr;
  const long before = resident_kib();
  int started = 0;
  while (started < wanted && pthread_create(&threads[started], &attributes, body, nullptr) == 0) ++started;
  for (int i = 0; i < started; ++i) {
    while (sem_wait(&holding) != 0) {
    }
  }
  if (started == wanted) check_resident("alive", before, started, alive);
  for (int i = 0; i < started; ++i) sem_post(&go_on);
  for (int i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
  if (started < wanted) return 77;
  check_resident("gone", before, started, gone);
  check_zeroed(100000);
  ok();
}
