// SPDX-License-Identifier: MIT OR Apache-2.0
// malloc and its family on the default caches: a tag before each block holds its length and alignment. It reveals writes before
// the block and double frees.
#pragma once

#include "heap/heap.h"

namespace terrace::umem {

/// Two of them lie before a block, so that it is aligned as malloc's are. A debugger reads them.
struct MallocTag {
  std::uint32_t size;  // with the tags
  std::uint32_t stat;  // magic - size
};
static_assert(sizeof(MallocTag) == 8);
enum MallocMagic : std::uint32_t { magic_long = 0x16ba7000, magic_huge = 0x06e47000, magic_aligned = 0x3e3a1000 };

extern const heap::Heap::Redirect tagged_malloc;

}  // namespace terrace::umem
