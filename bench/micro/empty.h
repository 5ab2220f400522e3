// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstddef>

extern "C" {
/// What a call of malloc costs if nothing is done: always the same block.
void* bench_empty_malloc(std::size_t size) noexcept;
/// What a call of free costs if nothing is done.
void bench_empty_free(void* block) noexcept;
}
