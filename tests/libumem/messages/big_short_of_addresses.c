// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: audit,verbose
   ends: 0
   says:
*/
#include <stdlib.h>
#include <sys/resource.h>
#include <umem.h>

/* Where there is no room for pages of their own, blocks are served all the same. */
enum { size = 200000, most = 3000 };
static void* all[most];

int main(void) {
  setrlimit(RLIMIT_AS, &(struct rlimit){(size_t)1 << 30, (size_t)1 << 30});
  int n = 0;
  while (n < most && (all[n] = n % 2 ? malloc(size) : umem_alloc(size, UMEM_DEFAULT)) != NULL) ++n;
  for (int i = 0; i < n; ++i) {
    if (i % 2) {
      free(all[i]);
    } else {
      umem_free(all[i], size);
    }
  }
  return n < 2000;
}
