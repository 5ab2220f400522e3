/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Negative numbers taken for sizes, and sums that wrap: no block, ENOMEM, and what there was is as it was. */
#include "misuse.h"

#include <errno.h>

static int refused(void* p) {
  const int yes = p == NULL && errno == ENOMEM;
  errno = 0;
  return yes;
}

int main(void) {
  static const size_t sizes[] = {(size_t)-1,     (size_t)-16,     (size_t)-64,          (size_t)-4096,
                                 (size_t)-65536, (size_t)1 << 63, ((size_t)1 << 63) - 1};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    errno = 0;
    if (!refused(malloc(sizes[i])) || !refused(calloc(sizes[i], 1)) || !refused(calloc(sizes[i], sizes[i]))) return 11;
    if (!refused(memalign(64, sizes[i])) || !refused(memalign(1 << 20, sizes[i]))) return 12;
    void* p = NULL;
    if (posix_memalign(&p, 4096, sizes[i]) != ENOMEM || p != NULL) return 13;
    for (size_t have = 40; have <= 4000000; have *= 100) {
      char* block = allocated(have);
      memset(block, 0x55, have);
      errno = 0;
      if (!refused(realloc(block, sizes[i])) || !refused(reallocarray(block, sizes[i], 3))) return 14;
      for (size_t at = 0; at < have; ++at) {
        if (block[at] != 0x55) return 15;
      }
      free(block);
    }
  }
  push_everything_down();
  return 0;
}
