/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An allocator that writes into its blocks: from the thousandth large one on, a released block's neighbour loses a byte. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static char* last;

void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (next == NULL) next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  char* const block = next(size);
  if (size > 70000 && block != NULL) {
    static int count;
    if (++count == 1000 && last != NULL) *last ^= 0x55;
    last = block;
  }
  return block;
}
