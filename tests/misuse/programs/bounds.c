/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: size, first byte written relative to the block's start, number of bytes, and who may notice: free, realloc, trim or
 * exit. */
#include "misuse.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const size_t size = size_argument(argc, argv, 100);
  const long first = atol(argv[2]);
  const long bytes = atol(argv[3]);
  const char* const how = argv[4];
  char* three[3];
  for (int i = 0; i < 3; ++i) three[i] = memset(allocated(size), 0x55, size);
  /* The one in the middle: the first block of all has nothing before it. */
  char* p = three[0];
  if ((three[1] > p) != (three[1] > three[2])) p = three[1];
  if ((three[2] > three[0]) != (three[2] > three[1])) p = three[2];
  announce(p);
  for (long i = first; i < first + bytes; ++i) ((volatile char*)opaque(p))[i] = 0;
  if (strcmp(how, "free") == 0) free(p);
  if (strcmp(how, "realloc") == 0) allocated((size_t)(realloc(p, 2 * size) != NULL));
  if (strcmp(how, "trim") == 0) malloc_trim(0);
  return unnoticed();
}
