// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/tagged.h"

#include "base/bits.h"
#include "umem/default_caches.h"
#include "umem/faults.h"
#include "umem/firewall.h"
#include "umem/log.h"
#include "umem/messages.h"

#include <cerrno>
#include <cstring>

namespace terrace::umem {

using heap::heap;

namespace {

using Tag = MallocTag;
constexpr std::uint32_t freed_stat = 0xdeadbeef;
constexpr std::size_t tagged_alignment = 16, tags = 2 * sizeof(Tag);

Tag& tag_before(void* p, unsigned nth = 1) noexcept { return static_cast<Tag*>(p)[-static_cast<int>(nth)]; }

void write_tag(Tag& t, std::uint32_t magic, std::uint32_t size) noexcept { t = {.size = size, .stat = magic - size}; }

// What a tag says. For `huge` blocks the tag before it has the high half of the size, for aligned ones how far the block lies
// from its memory.
struct Block {
  std::byte* memory = nullptr;
  std::size_t total = 0;  // bytes of memory
  std::size_t size = 0;   // that the program may use
  explicit operator bool() const noexcept { return memory != nullptr; }
};

Block block_at(void* p) noexcept {
  auto* const at = static_cast<std::byte*>(p);
  const Tag t = tag_before(p);
  const std::uint32_t magic = t.stat + t.size;
  Block b;
  if (magic == magic_long) {
    b = {.memory = at - tags, .total = t.size};
  } else if (magic == magic_huge) {
    b = {.memory = at - tags, .total = static_cast<std::size_t>(tag_before(p, 2).size) << 32 | t.size};
  } else if (magic == magic_aligned) {
    const Tag far = tag_before(p, 2);
    b = {.memory = at - far.size, .total = static_cast<std::size_t>(far.stat) << 32 | t.size};
  }
  if (b) b.size = b.total - static_cast<std::size_t>(at - b.memory);
  return b;
}

// Reading before p must be possible: p lies in the heap, and not at its very beginning, or in pages of its own.
bool may_have_tag(const void* p) noexcept {
  const auto* const at = static_cast<const std::byte*>(p);
  if (const Walled* const w = walled_at(p)) return w->in_use && at - tags >= w->pages && at < w->pages + w->bytes;
  return address_of(p) % tagged_alignment == 0 && heap.spans().window().contains(at - tags) &&
         heap.spans().window().contains(at);
}

void report(const char* function, const void* p, bool freed) noexcept {
  keep_for_core(Fault::bad_block, p);
  Message().text(function).text("(").pointer(p).text(freed ? "): double-free or invalid buffer\n"
                                                           : "): invalid or corrupted buffer\n");
  heap_is_corrupt();
}

bool was_freed(void* p, bool readable) noexcept {
  if (const Walled* const w = walled_at(p)) return !w->in_use;
  return readable && tag_before(p).stat == freed_stat;
}

// Sound, or said to be not.
Block look_up(const char* function, void* p) noexcept {
  const bool readable = may_have_tag(p);
  const Block b = readable ? block_at(p) : Block{};
  if (!b) report(function, p, was_freed(p, readable));
  return b;
}

// For who looks at the memory later, if anybody does.
void remember(std::byte* memory, std::size_t total, bool walled, const void* p) noexcept {
  const Cache* const c = walled ? nullptr : default_cache_for(total);
  if (walled || c != nullptr) note_block(c, memory, p);
}

void* allocate_usual(std::size_t size) noexcept {
  std::size_t total = 0;
  if (__builtin_add_overflow(size, tags, &total)) return nullptr;
  const bool to_be_walled = is_to_be_walled(size);
  void* all = to_be_walled || is_apart(total) ? allocate_walled_by_size(total, tagged_alignment, tags, !to_be_walled) : nullptr;
  const bool walled = all != nullptr;
  if (!walled && !to_be_walled) all = allocate_unwalled_by_size(total);
  auto* const memory = static_cast<std::byte*>(all);
  if (memory == nullptr) return nullptr;
  void* const p = memory + tags;
  remember(memory, total, walled, p);
  const auto low = static_cast<std::uint32_t>(total), high = static_cast<std::uint32_t>(total >> 32);
  if (high != 0) tag_before(p, 2).size = high;
  write_tag(tag_before(p), high != 0 ? magic_huge : magic_long, low);
  return p;
}

void* allocate_aligned(std::size_t size, std::size_t align) noexcept {
  constexpr std::size_t largest_gap = ~std::uint32_t{0};
  const bool to_be_walled = is_to_be_walled(size);
  std::size_t total = 0;
  if (align > largest_gap || __builtin_add_overflow(size, align + tags, &total)) return nullptr;
  void* all = to_be_walled || is_apart(total) ? allocate_walled_by_size(size + tags, align, tags, !to_be_walled) : nullptr;
  const bool walled = all != nullptr;
  if (walled) {
    total = size + tags;
  } else if (!to_be_walled) {
    all = allocate_unwalled_by_size(total);
  }
  auto* const memory = static_cast<std::byte*>(all);
  if (memory == nullptr) return nullptr;
  const std::size_t gap = round_up(address_of(memory) + tags, align) - address_of(memory);
  void* const p = memory + gap;
  remember(memory, total, walled, p);
  tag_before(p, 2) = {.size = static_cast<std::uint32_t>(gap), .stat = static_cast<std::uint32_t>(total >> 32)};
  write_tag(tag_before(p), magic_aligned, static_cast<std::uint32_t>(total));
  return p;
}

void* try_allocate(std::size_t size, std::size_t align) noexcept {
  return align <= tagged_alignment ? allocate_usual(size) : allocate_aligned(size, align);
}

// As umem_alloc(): with `mtbf` some fail, and with `checknull` no other one may.
void* allocate(std::size_t size, std::size_t align) noexcept {
  const bool injected = is_to_fail();
  void* const p = injected ? nullptr : try_allocate(size, align);
  if (p != nullptr) return p;
  log_failure(nullptr, size);
  if (!injected && (options.debug & debug_checknull) != 0) panic("out of heap space");
  return nullptr;
}

void release(void* p, const Block& b) noexcept {
  tag_before(p).stat = freed_stat;
  free_by_size(b.memory, b.total);
}

void free(void* p, const check::Claim&) noexcept {
  if (heap.is_plain(p)) return heap.free_plain(p);  // from before the caches were there
  if (const Block b = look_up("free", p)) release(p, b);
}

void* reallocate(void* p, std::size_t size) noexcept {
  std::size_t have = 0;
  Block b;
  const bool plain = heap.is_plain(p);
  if (plain) {
    have = heap.plain_size(p);
  } else {
    b = look_up("realloc", p);
    if (!b) {
      errno = EINVAL;
      return nullptr;
    }
    have = b.size;
    if (size == have) return p;
  }
  void* const fresh = allocate(size, tagged_alignment);
  if (fresh == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  std::memcpy(fresh, p, min_of(have, size));
  if (plain) {
    heap.free_plain(p);
  } else {
    release(p, b);
  }
  return fresh;
}

std::size_t usable_size(const void* p, const char* function) noexcept {
  if (heap.is_plain(p)) return heap.plain_size(p);
  const Block b = look_up(function, const_cast<void*>(p));
  return b.size;
}

}  // namespace

constexpr heap::Heap::Redirect tagged_malloc{
    .allocate = allocate, .free = free, .reallocate = reallocate, .usable_size = usable_size};

}  // namespace terrace::umem
