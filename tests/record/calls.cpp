// SPDX-License-Identifier: MIT OR Apache-2.0
// A program with known calls: its sizes, all above 70,000, can be told from what libc and the C++ runtime allocate beside
// them. record.py knows what each of its parts must leave in a trace.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int workers = 4;
constexpr int blocks = 500;

pthread_barrier_t barrier;
void* handed[workers][blocks];

void fill(void* block, std::size_t size) { memset(block, 1, size); }

// Each worker frees what its neighbour has allocated.
void* work(void* argument) {
  const auto self = static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(argument));
  for (std::size_t i = 0; i < blocks; ++i) fill(handed[self][i] = malloc(70'001 + self), 70'001);
  pthread_barrier_wait(&barrier);
  for (void* block : handed[(self + 1) % workers]) free(block);
  return nullptr;
}

void threads() {
  pthread_t all[workers];
  pthread_barrier_init(&barrier, nullptr, workers);
  for (std::uintptr_t i = 0; i < workers; ++i) pthread_create(&all[i], nullptr, work, reinterpret_cast<void*>(i));
  for (const pthread_t thread : all) pthread_join(thread, nullptr);
}

// Keeps one block for whoever waits for its end. Small ones: there are many.
void* live_shortly(void*) {
  void* all[50];
  for (void*& block : all) block = malloc(100);
  for (void*& block : all) block = realloc(block, 200);
  for (std::size_t i = 1; i < 50; ++i) free(all[i]);
  return all[0];
}

template <int count>
void live_together() {
  static pthread_t some[count];
  for (pthread_t& thread : some) pthread_create(&thread, nullptr, live_shortly, nullptr);
  for (const pthread_t thread : some) {
    void* block = nullptr;
    pthread_join(thread, &block);
    free(block);
  }
}

// Many threads: first a few at a time, then all at once.
void short_lives() {
  for (int wave = 0; wave < 60; ++wave) live_together<20>();
  live_together<500>();
}

void kinds() {
  free(malloc(100'003));
  free(calloc(3, 100'019));
  free(aligned_alloc(64, 128 * 1001));
  free(memalign(4096, 100'043));
  void* p = nullptr;
  if (posix_memalign(&p, 256, 100'049) != 0) _exit(1);
  free(p);
  p = realloc(nullptr, 100'057);
  p = realloc(p, 200'003);
  p = reallocarray(p, 3, 100'069);
  free(p);
  free(valloc(100'103));
  operator delete(operator new(100'109));
  free(nullptr);
  const volatile std::size_t too_much = PTRDIFF_MAX;
  free(malloc(too_much));
}

void fork_once() {
  void* const before = malloc(110'017);
  const pid_t child = fork();
  if (child == 0) {
    free(before);
    free(malloc(110'023));
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  free(before);
}

// Ends with some calls of which not a byte was written by any code that runs at the end of a process.
void die() {
  for (std::size_t i = 0; i < 30'000; ++i) free(malloc(120'011));
  fill(malloc(120'017), 1);
  kill(getpid(), SIGKILL);
}

// The program image changes, the process does not.
void exec_again(char** argv) {
  free(malloc(130'003));
  execl("/proc/self/exe", argv[0], "kinds", nullptr);
}

void close_all() {
  for (int file = 0; file < 1024; ++file) close(file);
  for (std::size_t i = 0; i < 200'000; ++i) free(malloc(140'009));
}

volatile sig_atomic_t handled = 0;
void on_alarm(int) {
  free(malloc(150'001));  // forbidden, and done
  handled = handled + 1;
}

void in_handlers() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  for (int i = 0; i < 1000; ++i) {
    free(malloc(150'011));
    raise(SIGALRM);
  }
}

bool is(const char* a, const char* b) { return strcmp(a, b) == 0; }

}  // namespace

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (is(what, "threads")) {
    threads();
  } else if (is(what, "short")) {
    short_lives();
  } else if (is(what, "kinds")) {
    kinds();
  } else if (is(what, "fork")) {
    fork_once();
  } else if (is(what, "die")) {
    die();
  } else if (is(what, "exec")) {
    exec_again(argv);
  } else if (is(what, "close")) {
    close_all();
  } else if (is(what, "handlers")) {
    in_handlers();
  } else if (is(what, "exit")) {
    free(malloc(160'001));
    _exit(7);
  } else {
    return 2;
  }
  return 0;
}
