/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Both copies wait in one magazine, which leaves the core since more blocks are freed than it may hold. None of them reaches a
 * slab: it is the look before the depot that finds it. */
#define _GNU_SOURCE
#include "misuse.h"

#include <sched.h>

enum { others = 20000, between = 3, rounds = 40 };

int main(int argc, char** argv) {
  const size_t size = size_argument(argc, argv, 24);
  /* Where words belong to cpus, the copies shall lie in one word. */
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  sched_setaffinity(0, sizeof here, &here);
  static void* blocks[others];
  /* So often that magazines of this size have grown. */
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < others / rounds; ++i) blocks[i] = allocated(size);
    for (int i = 0; i < others / rounds; ++i) free(blocks[i]);
  }
  for (int i = 0; i < others; ++i) blocks[i] = allocated(size);
  void* p = announce(allocated(size));
  for (int i = 0; i < others / 2; ++i) free(blocks[i]);
  free(p);
  for (int i = 0; i < between; ++i) free(blocks[others / 2 + i]);
  free(opaque(p));
  for (int i = others / 2 + between; i < others; ++i) free(blocks[i]);
  return unnoticed();
}
