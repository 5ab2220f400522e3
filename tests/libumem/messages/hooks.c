// SPDX-License-Identifier: MIT OR Apache-2.0
/* ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   buffer=%p  bufctl=%p  cache: umem_alloc_200
   umem: heap corruption detected
   stack trace:
   ...
*/
#include <umem.h>

const char* _umem_debug_init(void) { return "guards,verbose"; }
const char* _umem_options_init(void) { return "size_add=197"; }

int main(void) {
  void* p = umem_alloc(195, UMEM_DEFAULT);
  umem_free(p, 195);
  umem_free(p, 195);
  return 0;
}
