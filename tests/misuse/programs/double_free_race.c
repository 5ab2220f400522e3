/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two threads free the same block at the same time: whatever they see of each other, the global level gets it twice at most
 * once. */
#include "misuse.h"

enum { rounds = 200 };

static pthread_barrier_t barrier;

static void* free_it(void* p) {
  pthread_barrier_wait(&barrier);
  free(p);
  return NULL;
}

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 24);
  pthread_barrier_init(&barrier, NULL, 2);
  for (int i = 0; i < rounds; ++i) {
    void* p = allocated(size);
    pthread_t threads[2];
    for (int t = 0; t < 2; ++t) {
      if (pthread_create(&threads[t], NULL, free_it, opaque(p)) != 0) return 5;
    }
    for (int t = 0; t < 2; ++t) pthread_join(threads[t], NULL);
    push_everything_down();
  }
  return unnoticed();
}
