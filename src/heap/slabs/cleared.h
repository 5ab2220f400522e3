// SPDX-License-Identifier: MIT OR Apache-2.0
// Hardened build: free blocks hold zeroes, so that nothing of a program's data stays, and what is written to a free block is
// seen when it is handed out. A block that was freed has a key in its second word, which no program has by accident nor by the
// sight of another block: a secret of the process with the block's own address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::heap {

void choose_secret() noexcept;
/// Whether the block has its key.
bool is_freed(const void* block) noexcept;
/// What was a program's becomes a free block.
void clear(void* block, std::size_t size) noexcept;
/// Ends the process, in the name of `function`, if the free block was written to.
void expect_cleared(const char* function, std::uint64_t block, std::size_t size) noexcept;
/// A free block becomes a program's: the key goes, since with the block's address it would tell the secret.
void take_key(void* block) noexcept;

}  // namespace terrace::heap
