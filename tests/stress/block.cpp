// SPDX-License-Identifier: MIT OR Apache-2.0
#include "block.h"

#include "allocator.h"
#include "live_ranges.h"
#include "report.h"

#include <cstring>

namespace stress {
namespace {

constinit LiveRanges ranges;
bool failures_allowed = false;  // written before there are threads

constexpr std::size_t stamped_in_full = 64 * 1024;
constexpr std::size_t sample_step = 4096;
constexpr std::size_t sample_size = 64;

std::uint64_t stamp_of(const Block& b) {
  std::uint64_t x = b.owner * 0x9e3779b97f4a7c15U ^ reinterpret_cast<std::uintptr_t>(b.start) ^ (b.size << 48);
  x ^= x >> 31;
  x *= 0xbf58476d1ce4e5b9U;
  return x ^ x >> 29;
}

// The bytes at [8 * i, 8 * i + 8).
std::uint64_t word_at(std::uint64_t stamp, std::size_t i) { return stamp + i * 0x94d049bb133111ebU; }

// Pieces (offset, length) that are stamped: all of a small block, the ends and a line per page of a large one.
template <class Do>
void for_each_piece(std::size_t size, Do act) {
  if (size <= stamped_in_full) {
    act(std::size_t{0}, size);
    return;
  }
  for (std::size_t at = 0; at + sample_step < size; at += sample_step) act(at, sample_size);
  const std::size_t tail = (size - sample_step) & ~std::size_t{7};
  act(tail, size - tail);
}

void write_stamp(const Block& b) {
  const std::uint64_t stamp = stamp_of(b);
  auto* const bytes = static_cast<char*>(b.start);
  for_each_piece(b.size, [=](std::size_t from, std::size_t length) {
    for (std::size_t at = from; at < from + length; at += 8) {
      const std::uint64_t word = word_at(stamp, at / 8);
      const std::size_t n = from + length - at;
      std::memcpy(bytes + at, &word, n < 8 ? n : 8);
    }
  });
}

// `start` holds the first `size` bytes of what write_stamp(b) wrote.
void check_stamp(const Block& b, const void* start, std::size_t size, const char* doing) {
  const std::uint64_t stamp = stamp_of(b);
  const auto* const bytes = static_cast<const char*>(start);
  for_each_piece(b.size, [=, &b](std::size_t from, std::size_t length) {
    for (std::size_t at = from; at < from + length && at < size; at += 8) {
      std::size_t n = from + length - at;
      n = n < 8 ? n : 8;
      n = n < size - at ? n : size - at;
      const std::uint64_t word = word_at(stamp, at / 8);
      if (std::memcmp(bytes + at, &word, n) == 0) continue;
      std::uint64_t found = 0;
      std::memcpy(&found, bytes + at, n);
      fail("%s: block %p of %zu bytes was damaged at offset %zu: %#llx instead of %#llx", doing, start, b.size, at,
           static_cast<unsigned long long>(found), static_cast<unsigned long long>(word));
    }
  });
}

void claim(Block& b, const char* doing) {
  b.usable = api::malloc_usable_size(b.start);
  if (b.usable < b.size) fail("%s: block %p of %zu bytes has a usable size of %zu", doing, b.start, b.size, b.usable);
  if (const void* const at = ranges.claim(b.start, b.usable)) {
    fail("%s: block %p of %zu bytes (%zu usable) was handed out twice: %p is in a live block", doing, b.start, b.size, b.usable,
         at);
  }
}

void check_zero(const Block& b) {
  const auto* const bytes = static_cast<const char*>(b.start);
  if (b.size == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, b.size - 1) == 0)) return;
  std::size_t at = 0;
  while (bytes[at] == 0) ++at;
  fail("calloc: block %p of %zu bytes is not zero at offset %zu", b.start, b.size, at);
}

}  // namespace

void allow_failures() { failures_allowed = true; }

Block allocate(How how, std::size_t size, std::size_t alignment, std::uint64_t owner) {
  static constexpr const char* names[] = {"malloc", "calloc", "aligned_alloc", "posix_memalign"};
  const char* const name = names[static_cast<unsigned>(how)];
  Block b{.size = size, .owner = owner};
  int error = 0;
  errno = 0;
  switch (how) {
    case How::malloc: b.start = api::malloc(size); break;
    case How::calloc: b.start = api::calloc(size, 1); break;
    case How::aligned_alloc: b.start = api::aligned_alloc(alignment, size); break;
    case How::posix_memalign:
      error = api::posix_memalign(&b.start, alignment, size);
      if (error != 0) b.start = nullptr;
      break;
  }
  if (b.start == nullptr) {
    if (error == 0) error = errno;
    if (!failures_allowed || error != ENOMEM)
      fail("%s: no memory for %zu bytes, alignment %zu: error %d", name, size, alignment, error);
    return b;
  }
  if (!api::is_aligned(b.start, alignment)) fail("%s: block %p is misaligned, wanted %zu", name, b.start, alignment);
  claim(b, name);
  if (how == How::calloc) check_zero(b);
  write_stamp(b);
  return b;
}

void verify(const Block& block, const char* doing) {
  check_stamp(block, block.start, block.size, doing);
  const std::size_t usable = api::malloc_usable_size(block.start);
  if (usable != block.usable) {
    fail("%s: the usable size of %p changed from %zu to %zu", doing, block.start, block.usable, usable);
  }
}

void release(Block& block) {
  if (block.start == nullptr) return;
  verify(block, "free");
  if (const void* const at = ranges.release(block.start, block.usable)) fail("free: %p of %p has no owner", at, block.start);
  api::free(block.start);
  block.start = nullptr;
}

void resize(Block& block, std::size_t size, std::uint64_t owner) {
  verify(block, "realloc");
  const Block before = block;
  if (const void* const at = ranges.release(block.start, block.usable)) fail("realloc: %p of %p has no owner", at, block.start);
  errno = 0;
  block = {.start = api::realloc(before.start, size), .size = size, .owner = owner};
  if (block.start == nullptr) {
    if (!failures_allowed || errno != ENOMEM) fail("realloc: no memory for %zu bytes: error %d", size, errno);
    block = before;  // as it was
    claim(block, "failed realloc");
    verify(block, "after a failed realloc");
    return;
  }
  if (!api::is_aligned(block.start, 16)) fail("realloc: block %p is misaligned", block.start);
  claim(block, "realloc");
  check_stamp(before, block.start, size < before.size ? size : before.size, "after realloc");
  write_stamp(block);
}

}  // namespace stress
