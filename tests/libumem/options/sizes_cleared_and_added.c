// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem
   UMEM_OPTIONS: size_clear,size_add=64,size_add=1k
   UMEM_DEBUG: guards,verbose
   ends: SIGABRT
   says:
   umem allocator: duplicate free: buffer freed twice
   buffer=%p  bufctl=%p  cache: umem_alloc_1024
   umem: heap corruption detected
   stack trace:
   ...
*/
#include "twice.h"
