// SPDX-License-Identifier: MIT OR Apache-2.0
// Hardened build: free blocks hold zeroes, so that nothing of a program's data stays, and what is written to a free block is
// seen when it is handed out. A block that was freed has a key in its second word, which no program has by accident nor by the
// sight of another block: a secret of the process with the block's own address.
#include "base/report.h"
#include "heap/heap.h"
#include "os/secret.h"

#include <cstring>

namespace terrace::heap {
namespace {

constinit std::uint64_t secret = 0;

std::uint64_t key_of(const void* block) noexcept {
  const auto address = static_cast<std::uint64_t>(address_of(block));
  return ~(secret ^ (address << 21 | address >> 43));
}

bool all_zero(const std::byte* from, std::size_t bytes) noexcept {
  return bytes == 0 || (*from == std::byte{0} && std::memcmp(from, from + 1, bytes - 1) == 0);
}

}  // namespace

void Heap::choose_secret() noexcept { secret = os::process_secret(0); }

namespace {

// One that comes from a slab for the first time has no key.
bool is_cleared(const void* block, std::size_t size) noexcept {
  const auto* const words = static_cast<const std::uint64_t*>(block);
  return words[0] == 0 && (words[1] == 0 || words[1] == key_of(block)) &&
         all_zero(reinterpret_cast<const std::byte*>(words + 2), size - 2 * sizeof(std::uint64_t));
}

}  // namespace

// The key goes: with the block's address it would tell the secret.
void Heap::check_cleared(void* block, SizeClass c) noexcept {
  if (block == nullptr) return;
  if (!is_cleared(block, class_size(c))) report_write_after_free("malloc", block);
  static_cast<std::uint64_t*>(block)[1] = 0;
}

void Heap::clear_freed(void* p, HomeClass h) noexcept {
  if (!slabs_.is_block(p)) report_invalid_pointer("free", p);
  if (is_freed(p)) report_double_free("free", p);
  std::memset(p, 0, class_size(class_of(h)));
  static_cast<std::uint64_t*>(p)[1] = key_of(p);
}

void Heap::check_cleared(const std::uint64_t* blocks, unsigned n) noexcept {
  const std::size_t size = n == 0 ? 0 : class_size(class_of(heap.home_class_of(reinterpret_cast<void*>(blocks[0]))));
  for (unsigned i = 0; i < n; ++i) {
    const auto* const block = reinterpret_cast<const void*>(blocks[i]);  // NOLINT(performance-no-int-to-ptr)
    if (!is_cleared(block, size)) report_write_after_free("free", block);
  }
}

bool Heap::is_freed(const void* block) noexcept { return static_cast<const std::uint64_t*>(block)[1] == key_of(block); }

}  // namespace terrace::heap
