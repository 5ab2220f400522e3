// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

extern "C" {
/// What a call of malloc costs if nothing is done: the caller brings the block.
void* bench_empty_malloc(void* block) noexcept;
/// What a call of free costs if nothing is done.
void bench_empty_free(void* block) noexcept;
}
