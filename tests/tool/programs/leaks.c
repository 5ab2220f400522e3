// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks that are reachable in one way each, and blocks that are leaked: for the debugger's tests. Prints "ready" when all is
// as asked for and waits for its standard input to end; then it ends, or aborts.
//
//   leaks COUNT SIZE [abort]    COUNT leaked blocks of SIZE bytes, besides all the blocks that are not leaked
//   leaks busy COUNT SIZE       the same, while threads allocate and free all the time
//   leaks threads COUNT SIZE    so many threads, each of which leaks a block; half of them on stacks side by side in one mapping
//   leaks list MIB SIZE COUNT   a linked list of so many MiB in blocks of SIZE bytes, and COUNT leaked ones of the same size
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct node {
  struct node* next;
};

// A size for each kind of root, which no leak has: what is reported says which root was missed.
enum {
  of_data = 1700,
  of_interior = 1900,
  of_tls = 2300,
  of_stack = 2700,
  of_thread = 3200,
  of_mapping = 3800,
  of_register = 4400,
  of_large = 5000000
};

// Volatile: nobody reads them.
static void* volatile in_data;
static char* volatile in_the_middle;
static struct node* chain;
static void* volatile large;
static __thread void* volatile in_tls;
static void** in_mapping;
static volatile int thread_is_ready;

static void* allocated(size_t size) {
  void* p = malloc(size);
  if (p == NULL) exit(3);
  return memset(p, 0, size);
}

static void* of_other_thread(void* unused) {
  void* volatile on_its_stack = allocated(of_thread);
  in_tls = allocated(of_tls);
  thread_is_ready = 1;
  pause();
  return on_its_stack == NULL ? unused : NULL;
}

// Not inlined: what it leaves on the stack lies below the stack pointer later on.
__attribute__((noinline)) static void leak(long count, size_t size) {
  for (long i = 0; i < count; ++i) *(volatile char*)allocated(size) = 1;
}

__attribute__((noinline)) static void make_list(long mib, size_t size) {
  const long nodes = mib * 1048576 / (long)size;
  for (long i = 0; i < nodes; ++i) {
    struct node* fresh = malloc(size);
    if (fresh == NULL) exit(3);
    fresh->next = chain;
    chain = fresh;
  }
}

// Overwrites what functions have left on the stack.
__attribute__((noinline)) static void clear_stack(void) {
  char room[65536];
  memset(room, 0, sizeof room);
  __asm__ volatile("" : : "r"(room) : "memory");
}

// As read(0, byte, 1), while a pointer is in a register and nowhere else.
static long read_with_register(char* byte, void* volatile* pointer) {
  long result;
#if defined(__x86_64__)
  __asm__ volatile("mov (%[at]), %%r15\n\t movq $0, (%[at])\n\t syscall\n\t mov %%r15, (%[at])"
                   : "=a"(result)
                   : "a"(0L), "D"(0L), "S"(byte), "d"(1L), [at] "r"(pointer)
                   : "rcx", "r11", "r15", "memory");
#elif defined(__aarch64__)
  register long x0 __asm__("x0") = 0;
  register char* x1 __asm__("x1") = byte;
  register long x2 __asm__("x2") = 1;
  register long x8 __asm__("x8") = 63;
  __asm__ volatile("ldr x28, [%[at]]\n\t str xzr, [%[at]]\n\t svc 0\n\t str x28, [%[at]]"
                   : "+r"(x0)
                   : "r"(x1), "r"(x2), "r"(x8), [at] "r"(pointer)
                   : "x28", "memory");
  result = x0;
#else
  result = read(0, byte, 1);
#endif
  return result;
}

__attribute__((noinline)) static void wait_for_end(void* volatile* pointer) {
  static char byte;
  if (write(1, "ready\n", 6) != 6) exit(4);
  while (read_with_register(&byte, pointer) > 0) {
  }
}

// Pointers to the block are all over the stack below what the thread goes on to use, and none is in that.
__attribute__((noinline)) static void leave_behind(size_t size) {
  void* volatile room[2000];
  void* const lost = allocated(size);
  for (int i = 0; i < 1000; ++i) room[i] = lost;
  __asm__ volatile("" : : "r"(room) : "memory");
}

static void* losing(void* size) {
  void* volatile on_its_stack = allocated(of_thread);
  leave_behind((size_t)size);
  usleep(1);  // overwrites the registers
  __atomic_fetch_add(&thread_is_ready, 1, __ATOMIC_RELEASE);
  for (;;) pause();
  return on_its_stack;
}

static void lose_in_threads(long count, size_t size) {
  enum { stack = 131072 };
  char* const stacks = mmap(NULL, (size_t)count * stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stacks == MAP_FAILED) exit(3);
  for (long i = 0; i < count; ++i) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (i % 2 != 0) pthread_attr_setstack(&attributes, stacks + i * stack, stack);
    if (pthread_create(&thread, &attributes, losing, (void*)size) != 0) exit(3);
  }
  while (__atomic_load_n(&thread_is_ready, __ATOMIC_ACQUIRE) != count) usleep(1000);
}

static void* busily(void* unused) {
  enum { most = 300 };
  void* blocks[most] = {0};
  for (unsigned random = (unsigned)(size_t)unused;; random = random * 1664525 + 1013904223) {
    void** const block = &blocks[(random >> 8) % most];
    free(*block);
    *block = malloc((random >> 20) % 2000 + (random >> 12 & 1023 ? 0 : 400000));
  }
  return NULL;
}

// Of blocks that were allocated and freed no trace may be left either: they would be reported if they were taken for allocated.
static void churn(void) {
  enum { most = 5000 };
  static void* blocks[most];
  for (int i = 0; i < most; ++i) blocks[i] = allocated(24 + (size_t)i % 700);
  for (int i = 0; i < most; ++i) free(blocks[i]);
  memset(blocks, 0, sizeof blocks);
}

static void make_reachable(void) {
  in_data = allocated(of_data);
  in_the_middle = (char*)allocated(of_interior) + 1234;
  for (int i = 0; i < 1000; ++i) {
    struct node* fresh = allocated(sizeof *fresh);
    fresh->next = chain;
    chain = fresh;
  }
  large = (char*)allocated(of_large) + 4000000;
  in_mapping = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (in_mapping == MAP_FAILED) exit(3);
  in_mapping[100] = allocated(of_mapping);
}

int main(int argc, char** argv) {
  if (strcmp(argv[1], "list") == 0) {
    make_list(atol(argv[2]), (size_t)atol(argv[3]));
    leak(atol(argv[4]), (size_t)atol(argv[3]));
  } else if (strcmp(argv[1], "threads") == 0) {
    lose_in_threads(atol(argv[2]), (size_t)atol(argv[3]));
  } else if (strcmp(argv[1], "busy") == 0) {
    pthread_t thread;
    leak(atol(argv[2]), (size_t)atol(argv[3]));
    for (size_t i = 0; i < 4; ++i) {
      if (pthread_create(&thread, NULL, busily, (void*)i) != 0) return 3;
    }
    usleep(200000);
  } else {
    pthread_t thread;
    churn();
    make_reachable();
    if (pthread_create(&thread, NULL, of_other_thread, NULL) != 0) return 3;
    while (!thread_is_ready) usleep(1000);
    leak(atol(argv[1]), (size_t)atol(argv[2]));
  }
  void* volatile on_stack = allocated(of_stack);
  static void* volatile to_register;
  to_register = allocated(of_register);
  clear_stack();
  wait_for_end(&to_register);
  if (strcmp(argv[argc - 1], "abort") == 0) abort();
  _exit(on_stack == NULL);
}
