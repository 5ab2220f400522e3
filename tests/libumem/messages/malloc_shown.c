// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: guards
   UMEM_DEBUG: default
   ends: SIGABRT
   says:
   handled
*/
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is shown of malloc's blocks is what malloc has returned, for aligned ones too. */
extern struct {
  int error;
  const void *buffer, *real_buffer;
} umem_abort_info;
extern char umem_error_buffer[];

static char* volatile block;

static void handle(int number) {
  (void)number;
  char shown[64];
  snprintf(shown, sizeof shown, "block of malloc in it: %p\n", block);
  if (umem_abort_info.buffer != block || umem_abort_info.real_buffer >= umem_abort_info.buffer) _exit(2);
  if (strstr(umem_error_buffer, shown) == NULL) _exit(3);
  write(2, "handled\n", 8);
}

int main(void) {
  signal(SIGABRT, handle);
  free(malloc(4000));
  block = aligned_alloc(4096, 4096);
  block[malloc_usable_size(block)] = 1;
  free(block);
  return 5;
}
