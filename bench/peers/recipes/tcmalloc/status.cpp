// SPDX-License-Identifier: MIT OR Apache-2.0
// tcmalloc falls back from caches per CPU to caches per thread without a word, and its own interface is hidden in this object.
#include "tcmalloc/malloc_extension.h"

extern "C" __attribute__((visibility("default"))) int peer_per_cpu_caches() {
  return tcmalloc::MallocExtension::PerCpuCachesActive() ? 1 : 0;
}
