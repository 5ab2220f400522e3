// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: firewall, firewall=0 ,guards=1, verbose ,contents=x
   UMEM_OPTIONS: allocator=best,backend=brk,concurrency=4,max_contention=x,size_add=200000,size_remove=131072,size_remove=17,size_add=48,size_add=100,nomagazines,reap_interval=5,sbrk_minalloc=64k,sbrk_pagesize=0
   ends: 0
   says:
   umem allocator: UMEM_DEBUG: 'firewall' wants a size
   umem allocator: UMEM_DEBUG: 'firewall=0' wants a size
   umem allocator: UMEM_DEBUG: 'guards=1' takes no value
   umem allocator: UMEM_DEBUG: 'contents=x' wants a size
   umem allocator: UMEM_OPTIONS: 'allocator=best' has no meaning on Linux, where memory is one range of addresses
   umem allocator: UMEM_OPTIONS: 'backend=brk' is no such value
   umem allocator: UMEM_OPTIONS: 'concurrency=4' has no meaning on Linux, where each core has its own buffers
   umem allocator: UMEM_OPTIONS: 'max_contention=x' wants a number
   umem allocator: UMEM_OPTIONS: 'size_add=200000' wants a size of at most 128k
   umem allocator: UMEM_OPTIONS: 'size_remove=131072' can not be: the largest cache stays
   umem allocator: UMEM_OPTIONS: 'sbrk_minalloc=64k' has no meaning on Linux, where memory is one range of addresses
   umem allocator: UMEM_OPTIONS: 'sbrk_pagesize=0' has no meaning on Linux, where memory is one range of addresses
   umem allocator: UMEM_OPTIONS: 'size_remove=24' changes nothing
   umem allocator: UMEM_OPTIONS: 'size_add=48' changes nothing
*/
#include <umem.h>

static int hundred;
static void look(umem_cache_t* cache) { hundred += (int)(unsigned long)cache != 0; }

int main(void) {
  umem_free(umem_alloc(100, UMEM_DEFAULT), 100);
  umem_cache_applyall(look);
  return hundred == 46 + 1 ? 0 : 1;
}
