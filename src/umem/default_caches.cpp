// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/default_caches.h"

#include "base/format.h"
#include "heap/heap.h"
#include "os/memory.h"
#include "os/metadata.h"
#include "umem/debug.h"
#include "umem/faults.h"
#include "umem/firewall.h"
#include "umem/options.h"
#include "umem/update.h"

#include <algorithm>
#include <array>

namespace terrace::umem {

constinit Cache** default_caches = nullptr;

namespace {

constexpr std::uint32_t usual_sizes[] = {8,     16,    32,    48,    64,    80,    96,     112,    128,    160,   192,   224,
                                         256,   320,   384,   448,   512,   640,   768,    896,    1152,   1344,  1600,  2048,
                                         2304,  2688,  4096,  4544,  8192,  9216,  12288,  16384,  24576,  32768, 40960, 49152,
                                         57344, 65536, 73728, 81920, 90112, 98304, 106496, 114688, 122880, 131072};
constexpr std::size_t step = default_step;
constexpr std::size_t entries = largest_default / step;

class Sizes {
 public:
  Sizes() noexcept { std::copy(std::begin(usual_sizes), std::end(usual_sizes), sizes_.begin()); }
  /// False: nothing has changed.
  bool apply(const SizeChange& change) noexcept {
    const auto end = sizes_.begin() + count_;
    auto* const found = std::lower_bound(sizes_.begin(), end, change.size);
    switch (change.what) {
      case SizeChange::What::clear:
        sizes_[0] = largest_default;
        count_ = 1;
        return true;
      case SizeChange::What::add:
        if (*found == change.size) return false;
        std::copy_backward(found, end, end + 1);
        *found = change.size;
        ++count_;
        return true;
      case SizeChange::What::remove:
        if (found == end || *found != change.size || change.size == largest_default) return false;
        std::copy(found + 1, end, found);
        --count_;
        return true;
      case SizeChange::What::none: break;
    }
    return false;
  }
  const std::uint32_t* begin() const noexcept { return sizes_.data(); }
  const std::uint32_t* end() const noexcept { return sizes_.data() + count_; }

 private:
  std::array<std::uint32_t, std::size(usual_sizes) + std::tuple_size_v<decltype(Options::sizes)>> sizes_{};
  std::ptrdiff_t count_ = std::size(usual_sizes);
};

// As umem_alloc() promises: 16 from 16 bytes on, a line for multiples of one, a page for multiples of one.
std::size_t alignment_of(std::size_t size) noexcept {
  if (size % os::page_size() == 0) return os::page_size();
  if (size % cache_line == 0) return cache_line;
  return size < 16 ? 8 : 16;
}

Cache* make_cache(std::uint32_t size) noexcept {
  char name[32];
  Writer text(name, sizeof name);
  text.text("umem_alloc_").decimal(size).terminate();
  return create({.name = name,
                 .size = size,
                 .align = alignment_of(size),
                 .construct = nullptr,
                 .destruct = nullptr,
                 .reclaim = nullptr,
                 .private_data = nullptr,
                 .source = nullptr,
                 .flags = 0,
                 .serves_sizes = true});
}

void say_that_nothing_changes(const SizeChange& change, Complain complain) noexcept {
  char item[32];
  Writer text(item, sizeof item);
  text.text(change.what == SizeChange::What::add ? "size_add=" : "size_remove=").decimal(change.size);
  complain("UMEM_OPTIONS", item, text.length(), "changes nothing");
}

}  // namespace

bool default_caches_on() noexcept { return default_caches != nullptr; }

bool open_default_caches(Complain complain) noexcept {
  auto** const table = os::map_metadata<Cache*>(os::Metadata::levels, entries);
  if (table == nullptr) return false;
  Sizes sizes;
  for (unsigned i = 0; i < options.size_changes; ++i) {
    if (!sizes.apply(options.sizes[i])) say_that_nothing_changes(options.sizes[i], complain);
  }
  std::size_t filled = 0;
  for (const std::uint32_t size : sizes) {
    Cache* const c = make_cache(size);
    if (c == nullptr) return false;
    for (; filled < size / step; ++filled) table[filled] = c;
    // Smaller sizes that it is the first to be aligned for.
    for (std::size_t i = filled; i-- != 0 && (table[i] == c || table[i]->align < c->align);) {
      if (table[i]->align < alignment_of((i + 1) * step)) table[i] = c;
    }
  }
  default_caches = table;
  return true;
}

void* allocate_walled_by_size(std::size_t size, std::size_t align, std::size_t before, bool has_other_way) noexcept {
  const Cache* const c = default_cache_for(size);
  const auto attempt = [=] { return allocate_walled(c, size, align, before, c != nullptr ? c->debug : options.debug); };
  void* const memory = has_other_way ? attempt() : with_reclaim(attempt);
  if (memory != nullptr && c != nullptr) c->allocated.add();
  return memory;
}

// As caches are that have no `firewall`, which asks for more.
bool is_looked_at_apart() noexcept {
  constexpr unsigned any = debug_of_objects & ~static_cast<unsigned>(debug_firewall);
  return (options.debug & any) != 0 && (options.debug & debug_lite) == 0 && may_be_walled();
}

void* allocate_by_size(std::size_t size) noexcept {
  const bool walled = is_to_be_walled(size);
  if (walled || is_apart(size)) {
    void* const p = allocate_walled_by_size(size, size < 16 ? 8 : max_of<std::size_t>(alignment_of(size), 16), 0, !walled);
    if (p != nullptr || walled) return p;
  }
  return allocate_unwalled_by_size(size);
}

void* allocate_unwalled_by_size(std::size_t size) noexcept {
  if (size > largest_default)
    return with_reclaim([=] {
      return heap::heap.allocate_plain(size, size % os::page_size() == 0 ? os::page_size() : std::size_t{cache_line});
    });
  Cache& c = *default_cache_for(size);
  void* const object = allocate_slow(c);
  if (object != nullptr) mark_size(c, object, size);
  return object;
}

// Without pages of its own nothing is known of it but where it begins.
void* allocate_aligned_by_size(std::size_t size, std::size_t align) noexcept {
  const bool walled = is_to_be_walled(size);
  if (walled || is_looked_at_apart()) {
    void* const p = allocate_walled_by_size(size, max_of<std::size_t>(align, 8), 0, !walled);
    if (p != nullptr) walled_at(p)->aligned = true;
    if (p != nullptr || walled) return p;
  }
  return with_reclaim([=] { return heap::heap.allocate_plain(size, align); });
}

void free_by_size(void* memory, std::size_t size, bool aligned) noexcept {
  if (const Walled* const w = walled_at(memory)) {
    const Cache* const c = w->record.event.cache;
    if (w->in_use && w->aligned != aligned) report(Fault::wrong_function, c, memory, &w->record, {.aligned = w->aligned});
    free_walled(memory, c, size);
    return;
  }
  if (heap::heap.is_plain(memory)) return heap::heap.free_plain(memory);
  const Cache* const owner = aligned || size > largest_default ? cache_of(memory) : nullptr;
  if (owner != nullptr && is_debugged(*owner)) {
    if (aligned) return report(Fault::wrong_function, owner, memory, nullptr);
    return report(Fault::wrong_cache, nullptr, memory, nullptr, {.other = owner});
  }
  if (size > largest_default) return heap::heap.free_plain(memory, aligned ? "umem_free_align" : "umem_free");
  if (size == 0) size = 1;
  Cache& c = *default_cache_for(size);
  check_size(c, memory, size);
  free_slow(c, memory);
}

}  // namespace terrace::umem
