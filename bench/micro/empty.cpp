// SPDX-License-Identifier: MIT OR Apache-2.0
// In a shared object of its own, so that it is called as a preloaded malloc is: through the table of the linker, far away.
#include "empty.h"

namespace {
char block[64];
}

void* bench_empty_malloc(std::size_t) noexcept { return block; }

void bench_empty_free(void*) noexcept {}
