// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: nosignal,verbose
   on glibc
   ends: SIGABRT
   says:
   umem: called from signal handler
   stack trace:
   ...
*/
#include <signal.h>
#include <stdlib.h>

static void handle(int number) {
  (void)number;
  void* volatile p = malloc(10);
  free(p);
}

int main(void) {
  void* volatile p = malloc(10);
  free(p);
  signal(SIGUSR1, handle);
  raise(SIGUSR1);
  return 0;
}
