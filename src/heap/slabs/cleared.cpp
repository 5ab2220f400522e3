// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/slabs/cleared.h"

#include "base/bits.h"
#include "base/report.h"
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

// One that comes from a slab for the first time has no key.
bool is_cleared(const void* block, std::size_t size) noexcept {
  const auto* const word = static_cast<const std::uint64_t*>(block);
  return word[0] == 0 && (word[1] == 0 || word[1] == key_of(block)) &&
         all_zero(reinterpret_cast<const std::byte*>(word + 2), size - 2 * sizeof(std::uint64_t));
}

}  // namespace

void choose_secret() noexcept { secret = os::process_secret(0); }

bool is_freed(const void* block) noexcept { return static_cast<const std::uint64_t*>(block)[1] == key_of(block); }

void clear(void* block, std::size_t size) noexcept {
  std::memset(block, 0, size);
  static_cast<std::uint64_t*>(block)[1] = key_of(block);
}

void expect_cleared(const char* function, std::uint64_t block, std::size_t size) noexcept {
  const auto* const p = reinterpret_cast<const void*>(block);  // NOLINT(performance-no-int-to-ptr): a round is a pointer
  if (!is_cleared(p, size)) report_write_after_free(function, p);
}

void take_key(void* block) noexcept { static_cast<std::uint64_t*>(block)[1] = 0; }

}  // namespace terrace::heap
