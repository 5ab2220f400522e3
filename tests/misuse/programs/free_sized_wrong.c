/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allowed to be ignored, and it is: the process must end well. */
#define _GNU_SOURCE
#include "misuse.h"

#include <dlfcn.h>

int main(void) {
  void (*free_sized)(void*, size_t) = (void (*)(void*, size_t))dlsym(RTLD_DEFAULT, "free_sized");
  void (*free_aligned_sized)(void*, size_t, size_t) =
      (void (*)(void*, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
  if (free_sized == NULL || free_aligned_sized == NULL) return 77;
  free_sized(allocated(100), 1);
  free_sized(allocated(10), 1000000);
  free_aligned_sized(allocated(100), 4096, 7);
  push_everything_down();
  return 0;
}
