// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: guards,verbose,noabort
   ends: 0
   says:
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: things
   umem allocator: redzone violation: write past end of buffer
   buffer=%p  bufctl=%p  cache: umem_alloc_112
*/
// What is not compared: of an object, the bytes before the next multiple of 8; of memory by size, those between the byte
// behind it and the end of its cache's object.
#include <string.h>
#include <umem.h>

int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 100, 0, 0, 0, 0, 0, 0, 0);
  char* object = umem_cache_alloc(cache, UMEM_DEFAULT);
  memset(object + 100, 1, 4);
  umem_cache_free(cache, object);
  object = umem_cache_alloc(cache, UMEM_DEFAULT);
  object[104] = 1;
  umem_cache_free(cache, object);

  char* memory = umem_alloc(100, UMEM_DEFAULT);
  memset(memory + 101, 1, 11);
  umem_free(memory, 100);
  memory = umem_alloc(100, UMEM_DEFAULT);
  memory[112] = 1;
  umem_free(memory, 100);
  return 0;
}
