/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library whose function is chosen by a resolver that allocates: the dynamic linker calls it while it relocates, before
   anybody's constructor. */
#include <stdlib.h>
#include <string.h>

static void* from_resolver;
static int resolved;

static int chosen(void) { return resolved; }

/* Through memory, not a static relocation: the resolver runs before some of those. */
static int (*resolve(void))(void) {
  char* p = malloc(100);
  if (p != NULL) {
    memset(p, 1, 100);
    p = realloc(p, 5000);
  }
  from_resolver = p;
  free(malloc(100000));
  resolved = p != NULL;
  return chosen;
}

int chosen_by_resolver(void) __attribute__((ifunc("resolve")));

void free_what_the_resolver_has(void) { free(from_resolver); }

static void* from_constructor;
__attribute__((constructor)) static void constructed(void) {
  from_constructor = malloc(3000);
  free(calloc(10, 1000));
}
__attribute__((destructor)) static void destroyed(void) { free(from_constructor); }
