// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: firewall=100,verbose
   ends: 0
   says:
*/
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 2000, ROUNDS = 8 };

static void* work(void* seed) {
  unsigned state = (unsigned)(unsigned long)seed;
  char* objects[COUNT] = {0};
  for (int i = 0; i < COUNT * ROUNDS; i++) {
    unsigned at = rand_r(&state) % COUNT;
    size_t size = 100 + rand_r(&state) % 20000;
    if (objects[at] != 0) {
      if (objects[at][0] != (char)at) return "changed";
      free(objects[at]);
    }
    objects[at] = malloc(size);
    if (objects[at] == 0) return "none";
    objects[at][0] = (char)at;
    objects[at][size - 1] = (char)at;
  }
  for (int i = 0; i < COUNT; i++) free(objects[i]);
  return 0;
}

/* Threads, children, and more addresses than a zone has. */
int main(void) {
  pthread_t threads[2];
  for (unsigned long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void*)(i + 1));
  pid_t child = fork();
  if (child == 0) _exit(work((void*)3) != 0);
  int status = 1;
  waitpid(child, &status, 0);
  for (int i = 0; i < 2; i++) {
    void* wrong = 0;
    pthread_join(threads[i], &wrong);
    if (wrong != 0) return 1;
  }
  return status != 0 ? 2 : 0;
}
