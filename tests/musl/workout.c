// SPDX-License-Identifier: MIT OR Apache-2.0
/* A program of musl's: threads that come and go, signals, forks, every way to allocate, and what libc allocates itself. Each
   block has contents that are checked. Ends with 0 and "ok", with 1 and a line on standard error, or with 77 where the rung
   that is its argument is not to be had. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 6, generations = 4, kept = 800, turns = 60000 };

struct block {
  unsigned char* at;
  size_t size;
  unsigned char content;
};

static void* volatile passed[64]; /* blocks that one thread allocates and another frees */
static unsigned ended;            /* threads that allocate no more */

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not so: %s\n", what);
  _exit(1);
}

static void fill(struct block* b, size_t size, unsigned char content) {
  expect(b->at != NULL, "memory");
  expect(malloc_usable_size(b->at) >= size, "malloc_usable_size is what was asked for, or more");
  b->size = size;
  b->content = content;
  memset(b->at, content, size < 256 ? size : 256);
  b->at[size - 1] = content;
}

static void check(const struct block* b) {
  for (size_t i = 0; i < b->size && i < 256; ++i) expect(b->at[i] == b->content, "a block keeps its contents");
  expect(b->at[b->size - 1] == b->content, "a block keeps its last byte");
}

static void allocate(struct block* b, unsigned random) {
  const size_t size = 1 + (random >> 4) % (random % 64 == 0 ? 400000 : random % 8 == 0 ? 9000 : 500);
  const size_t align = (size_t)16 << random % 13;
  switch (random >> 20 & 7) {
    case 0:
      b->at = calloc(size, 1);
      for (size_t i = 0; i < size; ++i) expect(b->at[i] == 0, "calloc gives zeroes");
      break;
    case 1:
      expect(posix_memalign((void**)&b->at, align, size) == 0, "posix_memalign");
      expect((uintptr_t)b->at % align == 0, "posix_memalign aligns");
      break;
    case 2:
      b->at = aligned_alloc(align, size);
      expect((uintptr_t)b->at % align == 0, "aligned_alloc aligns");
      break;
    default: b->at = malloc(size);
  }
  fill(b, size, (unsigned char)random);
}

static void resize(struct block* b, unsigned random) {
  const size_t size = 1 + b->size * (random % 7) / 3;
  b->at = realloc(b->at, size);
  if (size < b->size) b->size = size;
  if (b->size < size || b->at[b->size - 1] != b->content) fill(b, size, b->content);
  check(b);
}

static void fork_one(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 100; ++i) free(malloc((size_t)i * 50));
    _exit(0);
  }
  int status = 1;
  expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child allocates");
}

static void* work(void* seed) {
  struct block blocks[kept] = {0};
  unsigned random = 2654435761u * (unsigned)(uintptr_t)seed + 1;
  for (int turn = 0; turn < turns / generations; ++turn) {
    random = random * 1664525 + 1013904223;
    struct block* const b = &blocks[(random >> 8) % kept];
    if (b->at == NULL) {
      allocate(b, random ^ random >> 15);
    } else if (turn % 5 == 0) {
      resize(b, random >> 3);
    } else {
      check(b);
      free(b->at);
      b->at = NULL;
    }
    if (turn % 16 == 0) free(__atomic_exchange_n(&passed[random >> 26], malloc(random >> 22), __ATOMIC_ACQ_REL));
    if (turn % 4000 == 1) fork_one();
  }
  for (int i = 0; i < kept; ++i) free(blocks[i].at);
  __atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
  return NULL;
}

/* It interrupts the main thread only, while that sleeps. In pthread_join the thread may have to wake a fork of another thread,
   which holds the allocator's locks while it waits. */
static void on_signal(int number) {
  const int saved = errno;
  free(malloc(100));
  errno = saved;
}

static void what_libc_allocates(void) {
  char *line = NULL, *text, *memory;
  size_t length = 0;
  expect(asprintf(&text, "%d lines\n", 7) == 8, "asprintf");
  FILE* const stream = open_memstream(&memory, &length);
  for (int i = 0; i < 10000; ++i) fputs(text, stream);
  fclose(stream);
  expect(length == 80000, "open_memstream");
  FILE* const read = fmemopen(memory, length, "r");
  length = 0;
  expect(getline(&line, &length, read) == 8 && strcmp(line, text) == 0, "getline");
  fclose(read);
  char* const copy = strdup(line);
  free(line), free(text), free(memory), free(copy);
}

static void refusals(void) {
  const volatile size_t most = PTRDIFF_MAX; /* volatile: compilers know that it can not be */
  errno = 0;
  expect(malloc(most) == NULL && errno == ENOMEM, "what is too large is refused");
  expect(calloc(most, 3) == NULL, "calloc sees an overflow");
  const struct rlimit limit = {128 << 20, 128 << 20};
  setrlimit(RLIMIT_AS, &limit);
  void* list = NULL;
  for (;;) {
    void** const next = malloc(100000);
    if (next == NULL) break;
    *next = list;
    list = next;
  }
  expect(errno == ENOMEM && list != NULL, "memory ends with ENOMEM");
  while (list != NULL) {
    void* const next = *(void**)list;
    free(list);
    list = next;
  }
  free(malloc(100000));
}

#if defined(LINKED)
const char* terrace_rung(void);
#endif
static const char* rung(void) {
#if defined(LINKED)
  return terrace_rung();
#else
  const char* (*const f)(void) = (const char* (*)(void))dlsym(RTLD_DEFAULT, "terrace_rung");
  expect(f != NULL, "the library is preloaded");
  return f();
#endif
}

int main(int count, char** arguments) {
  if (count > 1 && strcmp(rung(), arguments[1]) != 0) return 77;
  what_libc_allocates();
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  signal(SIGALRM, on_signal);
  const struct itimerval often = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (uintptr_t generation = 0; generation < generations; ++generation) {
    pthread_t thread[threads];
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    for (uintptr_t i = 0; i < threads; ++i)
      expect(pthread_create(&thread[i], NULL, work, (void*)(generation * threads + i)) == 0, "pthread_create");
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < threads * (generation + 1)) usleep(1000);
    sigprocmask(SIG_BLOCK, &alarms, NULL);
    for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  }
  const struct itimerval never = {0};
  setitimer(ITIMER_REAL, &never, NULL);
  for (int i = 0; i < 64; ++i) free(passed[i]);
  refusals();
  puts("ok");
  return 0;
}
