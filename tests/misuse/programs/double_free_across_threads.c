/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A thread frees and ends; then another frees again. */
#include "misuse.h"

static void* free_it(void* p) {
  free(p);
  return NULL;
}

int main(int argc, char** argv) {
  void* p = announce(allocated(size_argument(argc, argv, 24)));
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, free_it, opaque(p)) != 0) return 5;
    pthread_join(thread, NULL);
  }
  push_everything_down();
  return unnoticed();
}
