// SPDX-License-Identifier: MIT OR Apache-2.0
// published.c NAME SIZE: what the test suites of other allocators try on a heap, each by its name (published.py). Status 0: the
// heap gave nothing away. 1: the misuse worked, or nobody noticed. A signal: it was stopped.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { many = 64, nobody_noticed = 1 };

static size_t size;
static volatile unsigned char sink;

static void fill(volatile unsigned char* p, int value, size_t n) {
  for (size_t i = 0; i < n; i++) p[i] = (unsigned char)value;
}

static int holds(const volatile unsigned char* p, int value, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (p[i] != value) return 0;
  }
  return 1;
}

// Frees `many` other blocks of the size, so that p is not the one freed last.
static void free_others(void) {
  void* others[many];
  for (int i = 0; i < many; i++) others[i] = malloc(size);
  for (int i = 0; i < many; i++) free(others[i]);
}

static int double_free(void) {
  void* p = malloc(size);
  free(p);
  free(p);
  return nobody_noticed;
}

static int double_free_delayed(void) {
  void* p = malloc(size);
  free(p);
  free_others();
  free(p);
  return nobody_noticed;
}

static int double_free_interleaved(void) {
  void* p = malloc(size);
  void* q = malloc(size);
  free(p);
  free(q);
  free(p);
  return nobody_noticed;
}

static int double_free_reuse(void) {
  void* p = malloc(size);
  free(p);
  void* again[1024];
  for (int i = 0; i < 1024; i++) again[i] = malloc(size);
  free(p);
  return nobody_noticed;
}

static int invalid_free_unaligned(void) {
  free((char*)malloc(size) + 1);
  return nobody_noticed;
}

static int invalid_free_inside(void) {
  free((char*)malloc(size) + 16);
  return nobody_noticed;
}

static int invalid_free_far(void) {
  free((char*)malloc(size) + ((size_t)1 << 30));
  return nobody_noticed;
}

static int invalid_free_stack(void) {
  volatile char here[64];
  free((void*)here);
  return nobody_noticed;
}

static int invalid_free_mapped(void) {
  free(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  return nobody_noticed;
}

static int invalid_usable_size(void) {
  char* p = malloc(size);
  free(p);
  sink = (unsigned char)malloc_usable_size(p);
  return nobody_noticed;
}

static int overflow(void) {
  unsigned char* p = malloc(size);
  fill(p + malloc_usable_size(p), 1, 8);
  free(p);
  return nobody_noticed;
}

static int overflow_a_mebibyte(void) {
  unsigned char* p = malloc(size);
  fill(p, 1, malloc_usable_size(p) + ((size_t)1 << 20));
  free(p);
  return nobody_noticed;
}

static int underflow(void) {
  unsigned char* p = malloc(size);
  fill(p - 8, 1, 8);
  free(p);
  return nobody_noticed;
}

static int read_after_free(void) {
  unsigned char* p = malloc(size);
  fill(p, 'a', size);
  free(p);
  size_t left = 0;
  for (size_t i = 0; i < size; i++) left += p[i] == 'a';
  return left > 8 ? nobody_noticed : 0;  // a key of 8 bytes may have some
}

static int write_after_free(void) {
  unsigned char* p = malloc(size);
  free(p);
  fill(p, 'a', size);
  malloc_trim(0);
  return nobody_noticed;
}

static int write_after_free_reuse(void) {
  unsigned char* p = malloc(size);
  free(p);
  fill(p + size / 2, 'a', 1);
  void* again[1024];
  for (int i = 0; i < 1024; i++) again[i] = malloc(size);
  return nobody_noticed;
}

static int zero_on_malloc(void) {
  unsigned char* p = malloc(size);
  fill(p, 'a', size);
  free(p);
  for (int i = 0; i < 1024; i++) {
    p = malloc(size);
    if (!holds(p, 0, size)) return nobody_noticed;
  }
  return 0;
}

static int malloc_reuse(void) {
  void* p = malloc(size);
  free(p);
  return malloc(size) == p ? nobody_noticed : 0;
}

static int write_zero_size(void) {
  fill(malloc(0), 'a', 1);
  return nobody_noticed;
}

static int executable_heap(void) {
  unsigned char* p = malloc(size);
#if defined(__x86_64__)
  fill(p, 0xc3, 1);  // ret
#else
  const uint32_t ret = 0xd65f03c0;
  memcpy(p, &ret, sizeof ret);
  __builtin___clear_cache((char*)p, (char*)p + sizeof ret);
#endif
  ((void (*)(void))(uintptr_t)p)();
  return nobody_noticed;
}

static int impossibly_large(void) {
  volatile size_t huge = SIZE_MAX - 4096;
  return malloc(huge) == NULL && calloc(huge / 2, 4) == NULL && realloc(malloc(size), huge) == NULL ? 0 : nobody_noticed;
}

static const struct {
  const char* name;
  int (*run)(void);
} tests[] = {
#define TEST(name) \
  { #name, name }
    TEST(double_free),
    TEST(double_free_delayed),
    TEST(double_free_interleaved),
    TEST(double_free_reuse),
    TEST(invalid_free_unaligned),
    TEST(invalid_free_inside),
    TEST(invalid_free_far),
    TEST(invalid_free_stack),
    TEST(invalid_free_mapped),
    TEST(invalid_usable_size),
    TEST(overflow),
    TEST(overflow_a_mebibyte),
    TEST(underflow),
    TEST(read_after_free),
    TEST(write_after_free),
    TEST(write_after_free_reuse),
    TEST(zero_on_malloc),
    TEST(malloc_reuse),
    TEST(write_zero_size),
    TEST(executable_heap),
    TEST(impossibly_large),
};

int main(int count, char** words) {
  if (count == 1) {
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) puts(tests[i].name);
    return 0;
  }
  if (count != 3) return 2;
  size = strtoul(words[2], NULL, 10);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    if (strcmp(words[1], tests[i].name) == 0) return tests[i].run();
  }
  return 2;
}
