// SPDX-License-Identifier: MIT OR Apache-2.0
// In a shared object of its own, so that it is called as a preloaded malloc is: through the table of the linker, far away.
#include "empty.h"

void* bench_empty_malloc(void* block) noexcept { return block; }

void bench_empty_free(void*) noexcept {}
