/* SPDX-License-Identifier: MIT OR Apache-2.0
   Uses several heaps by turns, from threads and from a child: each argument is a library, or "program" for the program's own
   malloc. Every allocation must succeed, and blocks keep what was written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { most_heaps = 8, blocks = 300, rounds = 3000, threads = 3 };

struct heap {
  const char* name;
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*umem_alloc)(size_t, int);
  void (*umem_free)(void*, size_t);
};
static struct heap heaps[most_heaps];
static int count;

static void fail(const char* what, const char* heap) {
  fprintf(stderr, "%s: %s\n", heap, what);
  _exit(1);
}

/* A function of the object itself, not of one that it depends on. */
static void* function(void* object, const char* name) {
  Dl_info info;
  void *const f = dlsym(object, name), *owner = NULL;
  return f != NULL && dladdr1(f, &info, &owner, RTLD_DL_LINKMAP) != 0 && owner == object ? f : NULL;
}

static void find(struct heap* h, const char* name) {
  h->name = name;
  if (strcmp(name, "program") == 0) {
    h->malloc = malloc;
    h->free = free;
    return;
  }
  void* const object = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (object == NULL) fail(dlerror(), name);
  h->malloc = function(object, "malloc");
  h->free = function(object, "free");
  h->umem_alloc = function(object, "umem_alloc");
  h->umem_free = function(object, "umem_free");
  if (h->malloc == NULL && h->umem_alloc == NULL) fail("no heap", name);
}

struct block {
  unsigned char* at;
  size_t size;
  int heap, is_umem;
};

static void check(const struct block* b) {
  for (size_t i = 0; i < b->size; i += 61) {
    if (b->at[i] != (unsigned char)(b->size + (size_t)b->heap)) fail("a block was written to", heaps[b->heap].name);
  }
}

static void* use(void* seed) {
  struct block all[blocks] = {0};
  uint64_t random = (uintptr_t)seed * 2 + 1;
  for (int round = 0; round < rounds; ++round) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    struct block* const b = &all[(random >> 40) % blocks];
    if (b->at != NULL) {
      check(b);
      if (b->is_umem)
        heaps[b->heap].umem_free(b->at, b->size);
      else
        heaps[b->heap].free(b->at);
    }
    b->heap = round % count;
    const struct heap* const h = &heaps[b->heap];
    b->size = 1 + (random >> 33) % ((random & 0x1f0000) != 0 ? 3000u : 400000u);
    b->is_umem = h->malloc == NULL || (h->umem_alloc != NULL && (round / count) % 2 != 0);
    b->at = b->is_umem ? h->umem_alloc(b->size, 0) : h->malloc(b->size);
    if (b->at == NULL) fail("no memory", h->name);
    memset(b->at, (int)(b->size + (size_t)b->heap), b->size);
  }
  for (int i = 0; i < blocks; ++i) {
    if (all[i].at != NULL) check(&all[i]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc && i <= most_heaps; ++i) find(&heaps[count++], argv[i]);
  pthread_t id[threads];
  for (int i = 0; i < threads; ++i) pthread_create(&id[i], NULL, use, (void*)(uintptr_t)i);
  use((void*)(uintptr_t)threads);
  const pid_t child = fork();
  if (child == 0) {
    use(NULL);
    _exit(0);
  }
  for (int i = 0; i < threads; ++i) pthread_join(id[i], NULL);
  int status;
  waitpid(child, &status, 0);
  if (status != 0) fail("the child fails", "fork");
  puts("all heaps work");
  return 0;
}
