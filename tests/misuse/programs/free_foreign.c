/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that the program got from the kernel. */
#include "misuse.h"

#include <sys/mman.h>

int main(void) {
  char* p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  free(announce(p + 65536));
  return unnoticed();
}
