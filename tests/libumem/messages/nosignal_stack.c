// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: nosignal,verbose
   ends: SIGABRT
   says:
   umem: called from signal handler
   stack trace:
   ...
*/
#include <setjmp.h>
#include <signal.h>
#include <umem.h>

static sigjmp_buf back;
static void leave(int number) { siglongjmp(back, number); }
static void handle(int number) {
  (void)number;
  umem_free(umem_alloc(10, UMEM_DEFAULT), 10);
}

/* Who has left a handler by longjmp is in none; who is on an alternate stack is. */
int main(void) {
  static char stack[64 * 1024];
  signal(SIGUSR1, leave);
  if (sigsetjmp(back, 1) == 0) raise(SIGUSR1);
  umem_free(umem_alloc(10, UMEM_DEFAULT), 10);
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, 0);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR2, &action, 0);
  umem_free(umem_alloc(10, UMEM_DEFAULT), 10);
  raise(SIGUSR2);
  return 0;
}
