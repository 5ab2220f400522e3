// SPDX-License-Identifier: MIT OR Apache-2.0
// Hardened build: free blocks hold zeroes behind link and key, so that nothing of a program's data stays, and what is written
// to a free block is seen when it is handed out.
#include "base/report.h"
#include "heap/heap.h"

#include <cstring>

namespace terrace::heap {
namespace {

constexpr std::size_t link_and_key = 2 * sizeof(std::uint64_t);

bool all_zero(const std::byte* from, std::size_t bytes) noexcept {
  return bytes == 0 || (*from == std::byte{0} && std::memcmp(from, from + 1, bytes - 1) == 0);
}

}  // namespace

// The link goes: with the block's address it would tell the secret.
void Heap::check_cleared(void* block, SizeClass c) noexcept {
  if (block == nullptr) return;
  auto* const bytes = static_cast<std::byte*>(block);
  if (!all_zero(bytes + link_and_key, class_size(c) - link_and_key)) report_write_after_free("malloc", block);
  std::memset(bytes, 0, link_and_key);
}

// Before the block is pushed, which tells some double frees but not where it starts.
void Heap::clear_freed(void* p, HomeClass h) noexcept {
  if (!slabs_.is_block(p)) report_invalid_pointer("free", p);
  if (static_cast<const std::uint64_t*>(p)[1] == chain::key(p)) report_double_free("free", p);
  std::memset(p, 0, class_size(class_of(h)));
}

}  // namespace terrace::heap
