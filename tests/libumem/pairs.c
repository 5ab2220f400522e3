// SPDX-License-Identifier: MIT OR Apache-2.0
/* How many instructions a pair of malloc and free takes, and one of a cache, in a process that is stepped: counts, so the time
   that a machine takes has no part in it. A cache's may take a tenth more. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

enum { warm = 200, pairs = 100 };
static umem_cache_t* cache;

static void of_malloc(int n) {
  for (int i = 0; i < n; ++i) {
    void* volatile p = malloc(100);
    free(p);
  }
}

static void of_cache(int n) {
  for (int i = 0; i < n; ++i) {
    void* volatile p = umem_cache_alloc(cache, UMEM_DEFAULT);
    umem_cache_free(cache, p);
  }
}

static long instructions_of(void (*run)(int)) {
  const pid_t child = fork();
  if (child == 0) {
    run(warm);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(77);
    raise(SIGSTOP);
    run(pairs);
    raise(SIGSTOP);
    _exit(0);
  }
  int status;
  long steps = 0;
  waitpid(child, &status, 0);
  if (!WIFSTOPPED(status)) exit(77); /* nobody may trace here: skipped */
  do {
    ++steps;
    if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) != 0 || waitpid(child, &status, 0) != child) exit(77);
  } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return steps / pairs;
}

int main(void) {
  cache = umem_cache_create("pairs", 100, 0, NULL, NULL, NULL, NULL, NULL, 0);
  const long plain = instructions_of(of_malloc), object = instructions_of(of_cache);
  printf("malloc %ld, cache %ld instructions\n", plain, object);
  return object * 10 > plain * 11;
}
