// SPDX-License-Identifier: MIT OR Apache-2.0
// Object caches and arenas for the debugger's tests. Prints "ready" when all is as asked for and waits for its standard input
// to end; then it ends, or aborts.
//
//   caches usual LEAKED [abort]    caches of a few kinds, LEAKED objects of the cache "lost" that nothing reaches, arenas, of
//                                  which one has a cache with an object that nothing reaches
//   caches large                   the same of a cache of large objects: one kept, one returned, one that nothing reaches
//   caches sizes                   memory by size, 1000 bytes from umem_alloc() and 3000 from malloc(), five blocks of each
//                                  kept, four returned, three that nothing reaches
//   caches broken                  an object that is written to when it is free, one that is written beyond: under UMEM_DEBUG
//   caches many COUNT LIVE         so many caches with so many objects in all
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vmem.h>
#include <umem.h>
#include <unistd.h>

struct node {
  struct node* next;
};

enum { kept_objects = 300, returned_objects = 50, kept_of_lost = 10, by_size = 5, by_size_leaked = 3 };

static struct node* list;
static void* volatile of_lost[kept_of_lost];
static void* volatile of_sizes[by_size];
static void* volatile of_arena[2];
static void* volatile large;
static void* volatile of_vast;
static umem_cache_t *kept, *lost;
static vmem_t *numbers, *pieces;

static void* sound(void* p) {
  if (p == NULL) exit(3);
  return p;
}

static umem_cache_t* cache(const char* name, size_t size) {
  return sound(umem_cache_create((char*)name, size, 0, NULL, NULL, NULL, NULL, NULL, 0));
}
__attribute__((noinline)) static void* object(umem_cache_t* c, size_t size) {
  return memset(sound(umem_cache_alloc(c, UMEM_DEFAULT)), 0, size);
}
__attribute__((noinline)) static void* block(size_t size) { return memset(sound(umem_alloc(size, UMEM_DEFAULT)), 0, size); }

// Not inlined: what it leaves on the stack lies below the stack pointer later on.
__attribute__((noinline)) static void leak(long count) {
  for (long i = 0; i < count; ++i) *(volatile char*)object(lost, 120) = 1;
  for (int i = 0; i < by_size_leaked; ++i) *(volatile char*)block(1000) = 1;
  *(volatile char*)block(300000) = 1;
}

__attribute__((noinline)) static void keep(void) {
  kept = cache("kept", 200);
  lost = cache("lost", 120);
  void* returned[returned_objects];
  for (int i = 0; i < kept_objects; ++i) {
    struct node* fresh = object(kept, 200);
    fresh->next = list;
    list = fresh;
  }
  for (int i = 0; i < returned_objects; ++i) returned[i] = object(kept, 200);
  for (int i = 0; i < returned_objects; ++i) umem_cache_free(kept, returned[i]);
  for (int i = 0; i < kept_of_lost; ++i) of_lost[i] = object(lost, 120);
  for (int i = 0; i < by_size; ++i) of_sizes[i] = block(1000);
  large = block(400000);
}

__attribute__((noinline)) static void make_arenas(void) {
  numbers = sound(vmem_create("numbers", (void*)0x10000, 0x100000, 0x100, NULL, NULL, NULL, 0, VM_NOSLEEP));
  pieces = sound(vmem_create("pieces", NULL, 0, 0x100, vmem_alloc, vmem_free, numbers, 0, VM_NOSLEEP));
  void* const first = sound(vmem_alloc(numbers, 0x300, VM_NOSLEEP));
  sound(vmem_alloc(numbers, 0x500, VM_NOSLEEP));
  sound(vmem_alloc(pieces, 0x200, VM_NOSLEEP));
  vmem_free(numbers, first, 0x300);

  enum { all = 5, returned = 2, bytes = 65536 };
  void* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) exit(3);
  vmem_t* const of_memory = sound(vmem_create("memory", memory, bytes, 64, NULL, NULL, NULL, 0, VM_NOSLEEP));
  umem_cache_t* const c = sound(umem_cache_create((char*)"of_arena", 256, 64, NULL, NULL, NULL, NULL, of_memory, 0));
  void* objects[all];
  for (int i = 0; i < all; ++i) objects[i] = object(c, 256);
  for (int i = 0; i < returned; ++i) umem_cache_free(c, objects[i]);
  for (int i = returned; i < all - 1; ++i) of_arena[i - returned] = objects[i];
}

// Overwrites what functions have left on the stack.
__attribute__((noinline)) static void clear_stack(void) {
  char room[65536];
  memset(room, 0, sizeof room);
  __asm__ volatile("" : : "r"(room) : "memory");
}

__attribute__((noinline)) static void make_large(void) {
  enum { bytes = 300000 };
  umem_cache_t* const vast = cache("vast", bytes);
  of_vast = object(vast, bytes);
  void* const returned = object(vast, bytes);
  *(volatile char*)object(vast, bytes) = 1;
  umem_cache_free(vast, returned);
}

__attribute__((noinline)) static void make_sizes(void) {
  enum { each = 5, returned = 4, leaked = 3 };
  static void* volatile kept_blocks[2 * each];
  void* back[2 * returned];
  for (int i = 0; i < each; ++i) {
    kept_blocks[2 * i] = block(1000);
    kept_blocks[2 * i + 1] = sound(malloc(3000));
  }
  for (int i = 0; i < leaked; ++i) {
    *(volatile char*)block(1000) = 1;
    *(volatile char*)sound(malloc(3000)) = 1;
  }
  for (int i = 0; i < returned; ++i) {
    back[2 * i] = block(1000);
    back[2 * i + 1] = sound(malloc(3000));
  }
  for (int i = 0; i < returned; ++i) {
    umem_free(back[2 * i], 1000);
    free(back[2 * i + 1]);
  }
}

__attribute__((noinline)) static void break_objects(void) {
  umem_cache_t* const c = cache("broken", 100);
  char *const modified = object(c, 100), *const beyond = object(c, 100);
  cache("whole", 64);
  umem_cache_free(c, modified);
  *(volatile char*)(modified + 24) = 7;
  memset(beyond + 100, 7, 12);
}

static void make_many(long count, long live) {
  umem_cache_t** const caches = sound(calloc((size_t)count, sizeof *caches));
  void** const objects = mmap(NULL, (size_t)live * sizeof *objects, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (objects == MAP_FAILED) exit(3);
  for (long i = 0; i < count; ++i) {
    char name[32];
    snprintf(name, sizeof name, "cache_%ld", i);
    caches[i] = cache(name, 16 + (size_t)(i % 16) * 8);
  }
  for (long i = 0; i < live; ++i) objects[i] = sound(umem_cache_alloc(caches[i % count], UMEM_DEFAULT));
}

__attribute__((noinline)) static void wait_for_end(void) {
  char byte;
  if (write(1, "ready\n", 6) != 6) exit(4);
  while (read(0, &byte, 1) > 0) {
  }
}

int main(int argc, char** argv) {
  if (strcmp(argv[1], "many") == 0) {
    make_many(atol(argv[2]), atol(argv[3]));
  } else if (strcmp(argv[1], "broken") == 0) {
    break_objects();
  } else if (strcmp(argv[1], "sizes") == 0) {
    make_sizes();
  } else if (strcmp(argv[1], "large") == 0) {
    make_large();
  } else {
    keep();
    leak(atol(argv[2]));
    make_arenas();
  }
  clear_stack();
  wait_for_end();
  if (strcmp(argv[argc - 1], "abort") == 0) abort();
  _exit(0);
}
