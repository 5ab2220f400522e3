// SPDX-License-Identifier: MIT OR Apache-2.0
// The key in the second word of a free block: what makes a double free visible at once. It is the block's address plus the
// window's base: different for each block, not to be guessed, and no address of anything (see span/window.cpp), so that no
// program has it there by accident. One addition on the fast path.
#pragma once

#include "base/bits.h"
#include "span/window.h"

namespace terrace::heap {

inline std::uint64_t key_base_of(const span::Window& window) noexcept { return address_of(window.base()); }
inline std::uint64_t key_of(const void* block, std::uint64_t key_base) noexcept { return address_of(block) + key_base; }

}  // namespace terrace::heap
