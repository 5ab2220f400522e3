// SPDX-License-Identifier: MIT OR Apache-2.0
// How much stack the calls take, from the caller's stack pointer down, on a painted stack; and a handler that allocates, frees
// and trims on a signal stack of 8,192 bytes, which was enough for a long time (SIGSTKSZ). argv: the most bytes.
#include "stack.h"

#include <algorithm>
#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int count = 20000;
void* blocks[count];
Random random_numbers{3};

void shuffle(int n) {
  for (int i = n - 1; i > 0; --i) std::swap(blocks[i], blocks[random_numbers.below(static_cast<std::uint64_t>(i) + 1)]);
}

void take(int n, std::size_t least, std::size_t further) {
  calls_from_here();
  for (int i = 0; i < n; ++i) blocks[i] = std::malloc(least + random_numbers.below(further));
}

void free_all(int n) {
  calls_from_here();
  for (int i = 0; i < n; ++i) std::free(blocks[i]);
}

void resize(int n, std::size_t least, std::size_t further) {
  calls_from_here();
  for (int i = 0; i < n; ++i) blocks[i] = std::realloc(blocks[i], least + random_numbers.below(further));
}

// Small ones of all homes, in any order: refills, spills, the search for duplicates, slabs made and given back.
void small() {
  for (int round = 0; round < 3; ++round) {
    take(count, 16, 300);
    shuffle(count);
    free_all(count);
  }
}

void middle() {
  for (int round = 0; round < 3; ++round) {
    take(count / 4, 16, 30000);
    shuffle(count / 4);
    resize(count / 4, 16, 30000);
    for (int i = 0; i < count / 4; ++i) malloc_usable_size(blocks[i]);
    free_all(count / 4);
  }
}

void large() {
  calls_from_here();
  take(300, 300000, 2000000);
  resize(300, 300000, 3000000);
  resize(300, 200000, 300000);
  free_all(300);
  void* p = std::malloc(3 * mib);
  p = std::realloc(p, 30 * mib);
  p = std::realloc(p, 10 * mib);
  std::free(p);
}

void others() {
  calls_from_here();
  for (int i = 0; i < 1000; ++i) blocks[i] = std::calloc(1, static_cast<std::size_t>(i) * 99 + 1);
  free_all(1000);
  for (int i = 0; i < 300; ++i) {
    if (posix_memalign(&blocks[i], std::size_t{16} << i % 13, static_cast<std::size_t>(i) * 977) != 0) blocks[i] = nullptr;
  }
  free_all(300);
  std::free(std::malloc(std::size_t{1} << 45));
}

// So often that ticks are due within them, and each eighth reads the limits.
void others_at_ticks() {
  for (int round = 0; round < 100; ++round) {
    others();
    usleep(1000);
  }
}

void ticks() {
  for (int round = 0; round < 20; ++round) {
    take(2000, 16, 9000);
    shuffle(2000);
    free_all(2000);
    usleep(3000);
  }
}

int trimmed = 0;
void trim() {
  calls_from_here();
  trimmed = malloc_trim(0);
}

void fork_once() {
  calls_from_here();
  const pid_t child = fork();
  if (child == 0) {
    small();
    trim();
    _exit(0);
  }
  expect_exit(child, 0);
}

// A list through the blocks, until there is no memory: the last resorts.
void exhaust() {
  calls_from_here();
  rlimit before{}, limit{};
  getrlimit(RLIMIT_AS, &before);
  limit = before;
  char* const end = static_cast<char*>(std::malloc(300 * mib));  // so much is mapped, and then free
  std::free(end);
  limit.rlim_cur = 64 * mib;  // below what is in use: nothing more
  setrlimit(RLIMIT_AS, &limit);
  for (const std::size_t size : {std::size_t{16}, std::size_t{32}, std::size_t{1000}, std::size_t{40000}}) {
    void** last = nullptr;
    while (auto** const p = static_cast<void**>(std::malloc(size * 16))) {
      *p = static_cast<void*>(last);
      last = p;
    }
    while (last != nullptr) {
      auto** const next = static_cast<void**>(*last);
      std::free(last);
      last = next;
    }
  }
  setrlimit(RLIMIT_AS, &before);
}

constexpr Operation operations[] = {{"small", small},    {"middle", middle}, {"large", large},    {"others", others_at_ticks},
                                    {"ticks", ticks},    {"trim", trim},     {"fork", fork_once}, {"exhaust", exhaust},
                                    {"after it", small}, {"trim", trim}};

void handler(int) {
  small();
  middle();
  large();
  others();
  trim();
}

// Where registers alone take most of it, as much as they leave of it elsewhere.
void on_a_small_signal_stack() {
  const std::size_t registers = static_cast<std::size_t>(std::max(sysconf(_SC_MINSIGSTKSZ), 0L));
  stack_t stack{};
  stack.ss_size = registers > 5 * kib ? (registers + 3 * kib + 4095) / 4096 * 4096 : 8192;
  stack.ss_sp = with_guard_below(stack.ss_size);
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  check(sigaltstack(&stack, nullptr) == 0 && sigaction(SIGUSR1, &action, nullptr) == 0, "no signal stack");
  raise(SIGUSR1);
}

void* wait_for_ever(void*) {
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  check(argc == 2, "how many bytes?");
  const std::size_t most = std::strtoull(argv[1], nullptr, 10);
  pthread_t other{};
  check(pthread_create(&other, nullptr, wait_for_ever, nullptr) == 0, "pthread_create");
  check(worst_of(operations) <= most, "a call takes more stack than it may");
  on_a_small_signal_stack();
  ok();
}
