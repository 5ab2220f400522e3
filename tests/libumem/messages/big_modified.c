// SPDX-License-Identifier: MIT OR Apache-2.0
/* object: umem_malloc
   UMEM_DEBUG: default,verbose
   UMEM_DEBUG: guards,verbose
   UMEM_DEBUG: audit,verbose
   ends: 0
   says:
*/
#include "faults.h"

#include <stdlib.h>
#include <umem.h>

#define SIZE 300000

/* Whoever touches it after it was freed, or behind its page's end, gets SIGSEGV at once. */
int main(void) {
  char* p = umem_alloc(SIZE, UMEM_DEFAULT);
  if (faults_at(p) || !faults_at(p + SIZE + 4096)) return 1;
  umem_free(p, SIZE);
  if (!faults_at(p) || !faults_at(p + SIZE - 1)) return 2;
  p = malloc(SIZE);
  if (faults_at(p + SIZE - 1) || !faults_at(p + SIZE + 4096)) return 3;
  p = realloc(p, SIZE + 100);
  if (faults_at(p + SIZE)) return 4;
  free(p);
  if (!faults_at(p)) return 5;
  p = aligned_alloc(65536, 65536 * 3);
  if ((size_t)p % 65536 != 0 || faults_at(p + 65536 * 3 - 1) || !faults_at(p + 65536 * 3)) return 6;
  free(p);
  return !faults_at(p);
}
