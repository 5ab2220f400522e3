// SPDX-License-Identifier: MIT OR Apache-2.0
// Holds known bytes by a few sites, for tests of `terrace profile`: sites [SHAPE] [churn|exit|abort]
//
//   orders: 16 MiB in blocks of 256 bytes         pages: 32 MiB in blocks of 64 KiB
//   load: 64 MiB that are freed before "ready"    lost: 8 MiB in blocks of 512 bytes that nothing points to
//
// For each byte that it reads, it takes orders of 16 MiB more, and says "taken".
// SHAPE: "threads": 500 threads take the orders, and stay; "fork": a child goes on in place of the program, which waits for it;
// "exec": the program executes itself first.
// SITES_PROFILE=PATH: the program starts the profiler itself, and writes its samples there before "ready": from a handler of a
// signal, with a thread that churns beside it.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { mib = 1 << 20, threads = 500 };

struct block {
  struct block* next;
};
static struct block *orders, *pages;

static void keep(struct block** list, struct block* block) {
  block->next = *list;
  *list = block;
}

static inline __attribute__((always_inline)) struct block* make_order(void) { return malloc(256); }

__attribute__((noinline)) static void take_orders(int bytes) {
  for (int done = 0; done < bytes; done += 256) keep(&orders, make_order());
}

__attribute__((noinline)) static void read_pages(int bytes) {
  for (int done = 0; done < bytes; done += 64 << 10) keep(&pages, calloc(1, 64 << 10));
}

__attribute__((noinline)) static void load(void) {
  struct block* all = NULL;
  for (int done = 0; done < 64 * mib; done += 4096) {
    if (done == 56 * mib) usleep(20000);  // the library looks every 10 ms how near the limit is: its next look finds these
    keep(&all, malloc(4096));
  }
  while (all != NULL) {
    struct block* next = all->next;
    free(all);
    all = next;
  }
}

__attribute__((noinline)) static void lose(void) {
  for (int done = 0; done < 8 * mib; done += 512) memset(malloc(512), 1, 512);
}

__attribute__((noinline)) static void often(void) { free(memset(malloc(30000), 1, 30000)); }

__attribute__((noinline)) static void seldom(void) { free(memset(malloc(3000), 1, 3000)); }

static void* churn(void* unused) {
  for (;;) {
    often();
    seldom();
  }
  return unused;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_are_there;

static void* take_part(void* unused) {
  pthread_mutex_lock(&lock);
  take_orders(16 * mib / threads);
  pthread_mutex_unlock(&lock);
  pthread_barrier_wait(&all_are_there);
  for (;;) pause();
  return unused;
}

static void take_by_threads(void) {
  pthread_barrier_init(&all_are_there, NULL, threads + 1);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, take_part, NULL) != 0) abort();
  }
  pthread_barrier_wait(&all_are_there);
}

// The child's end is the program's, but that only the child leaves a core file.
static int end_like(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    raise(WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}

// Of terrace/profile.h; this is also compiled where nothing is installed.
extern int terrace_profile_start(size_t, int) __attribute__((weak));
extern void terrace_profile_stop(void) __attribute__((weak));
extern size_t terrace_profile_period(void) __attribute__((weak));
extern int terrace_profile_write(int) __attribute__((weak));

static int file = -1, answer = -1;

static void expect(int is_so) {
  if (!is_so) abort();
}

static void on_signal(int number) {
  (void)number;
  errno = 4711;
  answer = terrace_profile_write(file);
  expect(errno == 4711);
}

static void start_profile(void) {
  expect(terrace_profile_start(0, 0) == EINVAL && terrace_profile_start(1, 2) == EINVAL && terrace_profile_period() == 0);
  expect(terrace_profile_start(1 << 20, 1) == 0 && terrace_profile_period() == 1 << 20);
  expect(terrace_profile_start(64 << 10, 0) == 0 && terrace_profile_period() == 64 << 10);
}

static void write_profile(const char* path) {
  expect(terrace_profile_write(-1) == EBADF);
  file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  expect(answer == 0);
  terrace_profile_stop();
  expect(terrace_profile_period() == 0);
}

int main(int argc, char** argv) {
  const char* shape = argc > 1 ? argv[1] : "";
  const char* what = argc > 1 ? argv[argc - 1] : "";
  if (strcmp(shape, "exec") == 0) {
    argv[1] = argv[0];
    free(malloc(100));
    execv("/proc/self/exe", argv + 1);
  }
  const char* const profile = getenv("SITES_PROFILE");
  if (profile != NULL) start_profile();
  load();
  if (strcmp(shape, "threads") == 0) {
    take_by_threads();
  } else {
    take_orders(16 * mib);
  }
  read_pages(32 * mib);
  lose();
  const pid_t child = strcmp(shape, "fork") == 0 ? fork() : 0;
  if (child != 0) return end_like(child);
  if (strcmp(what, "exit") == 0) return 7;
  pthread_t thread;
  if (strcmp(what, "churn") == 0) pthread_create(&thread, NULL, churn, NULL);
  if (profile != NULL) write_profile(profile);
  puts("ready");
  fflush(stdout);
  if (strcmp(what, "abort") == 0) abort();
  while (getchar() != EOF) {
    take_orders(16 * mib);
    puts("taken");
    fflush(stdout);
  }
  return 0;
}
