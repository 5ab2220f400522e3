// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocates through code that it makes at run time, of which no table says how to unwind it: made [exit|abort|write PATH]
//
//   16 MiB each by take_orders, read_pages and lose, called through a piece of such code that /tmp/perf-PID.map names.
//   With "exit" it says its number, and ends with status 7; with "write" it writes its samples to PATH.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { mib = 1 << 20, bytes_of_each = 16 * mib, place = 64 };

static void* volatile kept;
static volatile int calls;

static void keep(void** block) {
  *block = kept;
  kept = block;
}

__attribute__((noinline)) static void take_orders(void) {
  for (int done = 0; done < bytes_of_each; done += 256) keep(malloc(256));
}
__attribute__((noinline)) static void read_pages(void) {
  for (int done = 0; done < bytes_of_each; done += 8192) keep(malloc(8192));
}
__attribute__((noinline)) static void lose(void) {
  for (int done = 0; done < bytes_of_each; done += 512) memset(malloc(512), 1, 512);
}

// This frame is found by the stack pointer,
__attribute__((noinline)) static void directly(const unsigned char* code, void (*function)(void)) {
  ((void (*)(void (*)(void)))code)(function);
  ++calls;
}

// and this one, which has an array of variable length, by the base pointer: both have to be as they were.
__attribute__((noinline)) static void through(const unsigned char* code, void (*function)(void), int n) {
  volatile char room[n];
  room[n - 1] = 0;
  directly(code, function);
  calls += room[n - 1] + 1;
}

static const unsigned char codes[][16] = {
    // CPython's trampoline: sub $8,%rsp; call *%rdi; add $8,%rsp; ret
    {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3},
    // the same with a frame pointer: push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
    {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3},
    // a compiler's: push %rbp; mov %rsp,%rbp; sub $64,%rsp; call *%rdi; leave; ret
    {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 64, 0xff, 0xd7, 0xc9, 0xc3},
};
static const char* const names[] = {"py::take:/shop/orders.py", "py::Lost.lose:/shop/lost.py", "JS:*read /shop/pages.js:7:12"};

static const unsigned char* make(void) {
  unsigned char* const code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 3; ++i) memcpy(code + i * place, codes[i], sizeof codes[i]);
  if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0) abort();
  char path[64];
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  FILE* const map = fopen(path, "w");
  if (map == NULL) abort();
  fprintf(map, "%lx 1000 what lay there before\n", (unsigned long)code);
  for (int i = 0; i < 3; ++i) fprintf(map, "%lx %x %s\n", (unsigned long)(code + i * place), (unsigned)sizeof codes[i], names[i]);
  fclose(map);
  return code;
}

extern int terrace_profile_write(int) __attribute__((weak));

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  const unsigned char* const code = make();
  through(code, take_orders, argc + 8);
  through(code + place, lose, argc + 8);
  through(code + 2 * place, read_pages, argc + 8);
  if (strcmp(what, "exit") == 0) {
    printf("%d\n", (int)getpid());
    return 7;
  }
  if (argc > 2 && terrace_profile_write(open(argv[2], O_WRONLY | O_CREAT, 0644)) != 0) abort();
  puts("ready");
  fflush(stdout);
  if (strcmp(what, "abort") == 0) abort();
  return getchar() != EOF;
}
