/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes backwards from a block of the first slab, below all blocks: what Terrace knows of them does not follow at once. */
#include "misuse.h"

int main(void) {
  char* p = allocated(100);
  for (int i = 0; i < 1000; ++i) {
    char* other = allocated(100);
    if (other < p) p = other;
  }
  uintptr_t low = 0, high = 0, start = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    if (sscanf(line, "%lx-%lx", &low, &high) == 2 && low <= (uintptr_t)p && (uintptr_t)p < high) start = low;
  }
  if (start == 0) return 77;
  ((volatile char*)start)[-1] = 1;
  return unnoticed();
}
