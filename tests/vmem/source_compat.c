/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program in C, written as for illumos: the names, types and values that such sources rely on. Exit 0: all is as it should be. */
#include <stdint.h>
#include <string.h>
#include <sys/vmem.h>

_Static_assert(VM_SLEEP == 0 && VM_NOSLEEP == 1 && VM_PANIC == 2 && VM_KMFLAGS == 0xff, "allocation flags");
_Static_assert(VM_BESTFIT == 0x100 && VM_FIRSTFIT == 0x200 && VM_NEXTFIT == 0x400, "policies");
_Static_assert(VMEM_ALLOC == 1 && VMEM_FREE == 2 && VMEM_SPAN == 0x10 && VMEM_ROTOR == 0x20, "types of segments");
_Static_assert(VMEM_WALKER == 0x40 && VMEM_REENTRANT == 0x80000000, "types of segments");

/* Assignments that compile only if the prototypes are these. */
static vmem_t *(*create)(const char *, void *, size_t, size_t, vmem_alloc_t *, vmem_free_t *, vmem_t *, size_t, int) = vmem_create;
static void (*destroy)(vmem_t *) = vmem_destroy;
static void *(*alloc)(vmem_t *, size_t, int) = vmem_alloc;
static void *(*xalloc)(vmem_t *, size_t, size_t, size_t, size_t, void *, void *, int) = vmem_xalloc;
static void (*release)(vmem_t *, void *, size_t) = vmem_free;
static void (*xrelease)(vmem_t *, void *, size_t) = vmem_xfree;
static void *(*add)(vmem_t *, void *, size_t, int) = vmem_add;
static int (*contains)(vmem_t *, void *, size_t) = vmem_contains;
static void (*walk)(vmem_t *, int, void (*)(void *, void *, size_t), void *) = vmem_walk;
static size_t (*size_of)(vmem_t *, int) = vmem_size;
static vmem_t *(*heap_arena)(vmem_alloc_t **, vmem_free_t **) = vmem_heap_arena;

static void count(void *total, void *start, size_t size) {
  (void)start;
  *(size_t *)total += size;
}

static int identifiers(void) {
  vmem_t *const ids = create("ids", (void *)(uintptr_t)1, 99, 1, NULL, NULL, NULL, 0, VM_SLEEP);
  const uintptr_t first = (uintptr_t)alloc(ids, 1, VM_SLEEP | VM_NEXTFIT);
  uintptr_t second;
  release(ids, (void *)first, 1);
  second = (uintptr_t)alloc(ids, 1, VM_SLEEP | VM_NEXTFIT);
  release(ids, (void *)second, 1);
  destroy(ids);
  return first == 1 && second == 2;
}

static int memory(void) {
  vmem_alloc_t *heap_alloc;
  vmem_free_t *heap_free;
  vmem_t *const heap = heap_arena(&heap_alloc, &heap_free);
  vmem_t *const pages = create("pages", NULL, 0, 65536, heap_alloc, heap_free, heap, 4 * 65536, VM_NOSLEEP);
  void *const p = xalloc(pages, 65536, 1 << 20, 65536, 0, NULL, NULL, VM_NOSLEEP);
  size_t total = 0;
  int good = p != NULL && (uintptr_t)p % (1 << 20) == 65536 && contains(pages, p, 65536);
  memset(p, 1, 65536);
  walk(pages, (int)(VMEM_ALLOC | VMEM_FREE | VMEM_REENTRANT), count, &total);
  good = good && total == size_of(pages, VMEM_ALLOC | VMEM_FREE);
  good = good && add(pages, p, 65536, VM_NOSLEEP) == NULL;
  xrelease(pages, p, 65536);
  destroy(pages);
  return good;
}

int main(void) { return identifiers() && memory() ? 0 : 1; }
