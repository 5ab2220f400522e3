// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: default,verbose
   UMEM_LOGGING: transaction=32k,contents=32k,fail,slab
   ends: 0
   says:
*/
#include "log.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ends;

static void* allocate(void* unused) {
  while (!ends) free(malloc(100));
  return unused;
}

static int logs_work(void) {
  static const struct entry* all[10000];
  void* p = malloc(5000);
  free(p);
  for (int i = read_log(umem_transaction_log, all, 10000); i > 0; i--) {
    if (all[i - 1]->event.object == (char*)p - 16 && all[i - 1]->event.what == FREED) return 1;
  }
  return 0;
}

/* Children of a process whose threads write logs in that moment. */
int main(void) {
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, allocate, 0);
  int failed = 0;
  for (int i = 0; i < 30 && !failed; i++) {
    pid_t child = fork();
    if (child == 0) _exit(logs_work() ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    failed = status != 0;
  }
  ends = 1;
  for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
  return failed ? 1 : logs_work() ? 0 : 2;
}
