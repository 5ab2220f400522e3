// SPDX-License-Identifier: MIT OR Apache-2.0
// Hardened build: free blocks hold zeroes, so that no data of the program stays, and a write to a free block is detected at its
// next allocation. The second word of a freed block holds a key: a secret of the process combined with the block's address, so
// that no program has it by accident or learns it from another block.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::heap {

void choose_secret() noexcept;
/// Whether the block has its key.
bool is_freed(const void* block) noexcept;
/// Clears a block that was freed.
void clear(void* block, std::size_t size) noexcept;
/// Ends the process, in the name of `function`, if the free block was written to.
void expect_cleared(const char* function, std::uint64_t block, std::size_t size) noexcept;
/// Removes the key from a block before its allocation: with the block's address it would reveal the secret.
void take_key(void* block) noexcept;

}  // namespace terrace::heap
