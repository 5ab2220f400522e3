/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whose malloc does a program get? One line of JSON: the object that each function of the family comes from, what libc's own
   heap gained while this program held a million bytes, the usable sizes of some requests, and what the allocator says of
   itself. Run it as any other program, with LD_PRELOAD. Ends with 1 if blocks do not keep what was written to them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { blocks = 10000, threads = 4 };

static const char* const family[] = {
    "malloc", "free", "calloc", "realloc", "aligned_alloc", "posix_memalign", "malloc_usable_size", "_Znwm", "_ZdlPv"};
static const size_t requests[] = {1, 24, 100, 1000, 5000, 100000};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void* symbol(const char* name) { return dlsym(RTLD_DEFAULT, name); }

/* Objects are called through a pointer of the function's type; ISO C has no conversion from void*, POSIX asks for this. */
#define FUNCTION(pointer, name) (*(void**)&(pointer) = symbol(name))

static size_t size_of(size_t i) { return 16 + i * 37 % 170; }

static void* work(void* argument) {
  unsigned char** const block = argument;
  for (size_t i = 0; i < blocks; ++i) {
    block[i] = malloc(size_of(i));
    if (block[i] == NULL) abort();
    memset(block[i], (int)(i & 0xff), size_of(i));
  }
  return NULL;
}

static bool intact(unsigned char* const* block) {
  for (size_t i = 0; i < blocks; ++i)
    for (size_t at = 0; at < size_of(i); ++at)
      if (block[i][at] != (i & 0xff)) return false;
  return true;
}

/* Threads allocate, this one looks at what they wrote, moves every second block and frees them all. */
static bool works(void) {
  static unsigned char* block[threads][blocks];
  pthread_t worker[threads];
  for (size_t t = 0; t < threads; ++t)
    if (pthread_create(&worker[t], NULL, work, block[t]) != 0) return false;
  bool good = true;
  for (size_t t = 0; t < threads; ++t) pthread_join(worker[t], NULL);
  for (size_t t = 0; t < threads; ++t) {
    for (size_t i = 0; i < blocks; i += 2) {
      block[t][i] = realloc(block[t][i], size_of(i) * 3);
      if (block[t][i] == NULL) return false;
    }
    good = good && intact(block[t]);
    for (size_t i = 0; i < blocks; ++i) free(block[t][i]);
  }
  return good;
}

/* What libc's own heap holds, no matter whose malloc this program uses: asked of libc's object, not of the first one. */
static size_t held_by_libc(void) {
  struct mallinfo2 (*information)(void) = NULL;
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == NULL) return 0;
  *(void**)&information = dlsym(libc, "mallinfo2");
  if (information == NULL) return 0;
  const struct mallinfo2 now = information();
  return now.uordblks + now.hblkhd;
}

static size_t gained_by_libc(void) {
  static unsigned char* block[blocks];
  const size_t before = held_by_libc();
  work(block);
  const size_t after = held_by_libc();
  for (size_t i = 0; i < blocks; ++i) free(block[i]);
  return after > before ? after - before : 0;
}

static void print_owners(void) {
  printf("\"functions\": {");
  for (size_t i = 0; i < COUNT(family); ++i) {
    Dl_info where;
    void* const address = symbol(family[i]);
    const bool known = address != NULL && dladdr(address, &where) != 0;
    printf("%s\"%s\": ", i == 0 ? "" : ", ", family[i]);
    known ? printf("\"%s\"", where.dli_fname) : printf("null");
  }
  printf("}, ");
}

static void print_sizes(void) {
  printf("\"usable\": {");
  for (size_t i = 0; i < COUNT(requests); ++i) {
    void* const block = malloc(requests[i]);
    printf("%s\"%zu\": %zu", i == 0 ? "" : ", ", requests[i], malloc_usable_size(block));
    free(block);
  }
  printf("}, ");
}

typedef int control_fn(const char* name, void* old_value, size_t* old_length, void* new_value, size_t new_length);

static void print_jemalloc(control_fn* control) {
  const char* version = "";
  const char* per_cpu = "";
  unsigned arenas = 0;
  bool cache = false;
  size_t length = sizeof version;
  control("version", &version, &length, NULL, 0);
  length = sizeof per_cpu;
  control("opt.percpu_arena", &per_cpu, &length, NULL, 0);
  length = sizeof arenas;
  control("opt.narenas", &arenas, &length, NULL, 0);
  length = sizeof cache;
  control("opt.tcache", &cache, &length, NULL, 0);
  printf("\"version\": \"%s\", \"mode\": \"%u arenas%s%s%s\"", version, arenas, cache ? ", caches per thread" : "",
         strcmp(per_cpu, "disabled") == 0 ? "" : ", per CPU: ", strcmp(per_cpu, "disabled") == 0 ? "" : per_cpu);
}

/* Each allocator has its own way to say its version; those without one say nothing. */
static void print_own_words(void) {
  control_fn* control = NULL;
  const char* (*terrace)(void) = NULL;
  const char* (*rung)(void) = NULL;
  int (*mimalloc)(void) = NULL;
  const char* (*gperftools)(int*, int*, const char**) = NULL;
  int (*per_cpu)(void) = NULL;
  if (FUNCTION(control, "mallctl") != NULL)
    print_jemalloc(control);
  else if (FUNCTION(terrace, "terrace_version") != NULL && FUNCTION(rung, "terrace_rung") != NULL)
    printf("\"version\": \"%s\", \"mode\": \"core level, rung %s\"", terrace(), rung());
  else if (FUNCTION(mimalloc, "mi_version") != NULL)
    printf("\"version\": \"%d\", \"mode\": null", mimalloc());
  else if (FUNCTION(per_cpu, "peer_per_cpu_caches") != NULL)
    printf("\"version\": null, \"mode\": \"%s\"", per_cpu() ? "caches per CPU" : "caches per thread");
  else if (FUNCTION(gperftools, "tc_version") != NULL)
    printf("\"version\": \"%s\", \"mode\": null", gperftools(&(int){0}, &(int){0}, &(const char*){NULL}));
  else
    printf("\"version\": null, \"mode\": null");
}

int main(void) {
  const size_t gained = gained_by_libc();
  if (!works()) return 1;
  printf("{");
  print_owners();
  print_sizes();
  printf("\"libc\": \"%s\", \"gained_by_libc\": %zu, ", gnu_get_libc_version(), gained);
  print_own_words();
  printf("}\n");
  return 0;
}
