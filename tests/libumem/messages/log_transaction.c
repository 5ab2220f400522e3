// SPDX-License-Identifier: MIT OR Apache-2.0
/* UMEM_DEBUG: default,verbose
   UMEM_LOGGING: transaction,contents=100k
   on glibc
   ends: 0
   says:
*/
#include "log.h"

#include <umem.h>

/* What happened to an object can be followed back from its record, with what it held when it was freed. */
int main(void) {
  umem_cache_t* cache = umem_cache_create("things", 40, 0, 0, 0, 0, 0, 0, 0);
  char* p = umem_cache_alloc(cache, UMEM_DEFAULT);
  strcpy(p, "all that it held");
  umem_cache_free(cache, p);
  if (umem_cache_alloc(cache, UMEM_DEFAULT) != p) return 1;

  const struct event* record = record_of(p, 40);
  if (record->object != p || record->cache != cache || record->what != ALLOCATED) return 2;
  const struct entry* third = record->last_log;
  if (third == 0 || third->event.what != ALLOCATED || third->event.nanoseconds != record->nanoseconds) return 3;
  if (third->event.object != p || third->size != 40 || third->event.depth == 0) return 4;
  if (memcmp(third->behind, record + 1, third->event.depth * sizeof(void*)) != 0) return 5;
  const struct entry* second = third->event.last_log;
  if (second == 0 || second->event.what != FREED || second->event.object != p) return 6;
  const struct entry* held = second->event.contents;
  if (held == 0 || held->event.what != HELD || held->event.object != p || held->saved != 40) return 7;
  if (strcmp((const char*)held->behind, "all that it held") != 0) return 8;
  const struct entry* first = second->event.last_log;
  if (first == 0 || first->event.what != ALLOCATED || first->event.last_log != 0) return 9;
  if (!(first->event.nanoseconds < second->event.nanoseconds && second->event.nanoseconds < third->event.nanoseconds))
    return 10;

  const struct entry* all[100];
  int met = 0;
  for (int i = read_log(umem_transaction_log, all, 100); i > 0; i--) met += all[i - 1]->event.object == p;
  if (met != 3 || read_log(umem_content_log, all, 100) != 1) return 11;
  if (memcmp(&umem_content_log->magic, "UMEMLOG1", 8) != 0 || strcmp(umem_content_log->name, "contents") != 0) return 12;
  if (umem_content_log->chunk_bytes * umem_content_log->chunk_count < 100 * 1024) return 13;
  return umem_failure_log != 0 || umem_slab_log != 0 ? 14 : 0;
}
