// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/firewall.h"

#include "heap/heap.h"
#include "os/guard_pages.h"
#include "os/memory.h"
#include "os/metadata.h"
#include "os/yield.h"
#include "umem/audit.h"
#include "umem/faults.h"
#include "umem/patterns.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace terrace::umem {

constinit Walls walls;

namespace {

constexpr std::size_t zone_bytes = std::size_t{1} << 30, least_zone = std::size_t{1} << 26;
constexpr std::byte gap_byte{0xbb};
constexpr std::size_t most_filled = std::size_t{1} << 20;  // of a fresh object: it may have been meant to stay mostly untouched
constexpr std::size_t mappings_per_object = 2, share_of_mappings = 2;

constinit std::atomic<bool> busy{false};

std::atomic<Walled*>& owner_of(const Zone& z, const void* p) noexcept {
  return z.by_page[(address_of(p) - address_of(z.base)) / os::page_size()];
}

// One thread at a time adds a zone, or changes whose pages are whose. What it calls meanwhile takes locks of any rank.
class Alone {
 public:
  Alone() noexcept {
    while (busy.exchange(true, std::memory_order_acquire)) os::sleep_briefly();
  }
  ~Alone() { busy.store(false, std::memory_order_release); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
};

Zone* zone_of(const void* p) noexcept {
  // [F1] acquire, pairs with the release in take_addresses(): the zone is there.
  for (unsigned i = 0, n = walls.count.load(std::memory_order_acquire); i < n; ++i) {
    if (walls.zones[i].contains(p)) return &walls.zones[i];
  }
  return nullptr;
}

// As long as there are addresses for: a process may be limited.
bool open(Zone& z, std::size_t least) noexcept {
  for (std::size_t bytes = max_of(zone_bytes, least); z.base == nullptr; bytes /= 2) {
    if (bytes < max_of(least_zone, least)) return false;
    z.base = static_cast<std::byte*>(os::reserve(bytes, nullptr));
    z.bytes = bytes;
  }
  const std::size_t page = os::page_size();
  z.by_page = os::map_metadata<std::atomic<Walled*>>(os::Metadata::checks, z.bytes / page);
  z.addresses = vmem_create("umem_firewall_va", z.base, z.bytes, page, nullptr, nullptr, nullptr, 0, VM_NOSLEEP);
  if (z.by_page != nullptr && z.addresses != nullptr) {
    // A mark for each page of a longer one would be much to write.
    z.one_mapping = z.bytes <= zone_bytes && os::commit(z.base, z.bytes) && os::install_guards(z.base, z.bytes);
    return z.one_mapping || os::make_inaccessible(z.base, z.bytes);
  }
  os::release(z.base, z.bytes);
  z.base = nullptr;
  return false;
}

std::byte* take_from(const Zone& z, std::size_t bytes) noexcept {
  return static_cast<std::byte*>(vmem_alloc(z.addresses, bytes, VM_NOSLEEP | VM_NEXTFIT));
}

// Addresses of a zone that has them, or of a new one.
std::byte* take_addresses(std::size_t bytes) noexcept {
  const unsigned n = walls.count.load(std::memory_order_acquire);  // [F1]
  for (unsigned i = 0; i < n; ++i) {
    if (std::byte* const at = take_from(walls.zones[i], bytes)) return at;
  }
  const Alone alone;
  const unsigned now = walls.count.load(std::memory_order_relaxed);
  if (now == n) {
    if (now == Walls::most || !open(walls.zones[now], round_up(bytes, std::size_t{1} << 16))) return nullptr;
    walls.count.store(now + 1, std::memory_order_release);  // [F1]
  }
  return take_from(walls.zones[n], bytes);  // perhaps added by somebody else
}

template <class Body>
void for_each_page(const std::byte* pages, std::size_t bytes, Body body) noexcept {
  const Zone& z = *zone_of(pages);
  for (std::size_t at = 0, page = os::page_size(); at < bytes; at += page) body(owner_of(z, pages + at));
}

// The pages' last object is forgotten, wherever it lay.
void set_owner(const std::byte* pages, std::size_t bytes, Walled* w) noexcept {
  const Alone alone;
  for_each_page(pages, bytes, [w](std::atomic<Walled*>& owner) {
    Walled* const before = owner.load(std::memory_order_acquire);
    if (before != nullptr) {
      for_each_page(before->pages, before->bytes, [before](std::atomic<Walled*>& other) {
        Walled* expected = before;
        other.compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel);
      });
      heap::heap.free_plain(before);
    }
    owner.store(w, std::memory_order_release);
  });
}

// In zones where each object has mappings of its own. relaxed: a number to compare with another.
constinit std::atomic<std::size_t> with_mappings{0};

// To the page's end: there a guard begins.
std::size_t gap_behind(const void* object, std::size_t size) noexcept {
  const std::uintptr_t end = address_of(object) + size;
  return round_up(end, os::page_size()) - end;
}

// The pages that the object lies on become memory. False: there is none, or there are too many mappings.
bool open_pages(const void* object, std::size_t size) noexcept {
  auto* const first = static_cast<std::byte*>(pointer_to(round_down(address_of(object), os::page_size())));
  const std::size_t bytes = address_of(object) + size + gap_behind(object, size) - address_of(first);
  if (zone_of(first)->one_mapping) return os::remove_guards(first, bytes);
  if (!os::commit(first, bytes)) return false;
  with_mappings.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Without memory, but not for use yet.
void give_pages(std::byte* pages, std::size_t bytes) noexcept {
  const Zone& z = *zone_of(pages);
  const bool gone = z.one_mapping ? os::install_guards(pages, bytes) : os::make_inaccessible(pages, bytes);
  if (!gone) os::deny_access(pages, bytes);
  if (!z.one_mapping) with_mappings.fetch_sub(1, std::memory_order_relaxed);
  vmem_free(z.addresses, pages, bytes);
}

}  // namespace

bool may_be_walled() noexcept {
  static const std::size_t most = os::most_mappings() / mappings_per_object / share_of_mappings;
  return with_mappings.load(std::memory_order_relaxed) < most;
}

Walled* walled_at(const void* p) noexcept {
  const Zone* const z = zone_of(p);
  return z == nullptr ? nullptr : owner_of(*z, p).load(std::memory_order_acquire);
}

void* allocate_walled(const Cache* c, std::size_t size, std::size_t align, std::size_t before, unsigned debug) noexcept {
  const std::size_t page = os::page_size();
  std::size_t bytes = 0;
  if (__builtin_add_overflow(size, max_of(align, page) + 3 * page, &bytes)) return nullptr;
  bytes = round_up(size + (align > page ? align : align - 1), page) + page;
  std::byte* const pages = take_addresses(bytes);
  if (pages == nullptr) return nullptr;
  const std::uintptr_t last = address_of(pages) + bytes - page;
  auto* const object = static_cast<std::byte*>(pointer_to(round_down(last - (size - before), align))) - before;
  if (!open_pages(object, size)) {
    vmem_free(zone_of(pages)->addresses, pages, bytes);
    return nullptr;
  }
  const std::size_t gap = gap_behind(object, size);
  constexpr std::size_t front = offsetof(Walled, record);
  Record* const r = make_record(c, object, debug, front);
  if (r == nullptr) {
    give_pages(pages, bytes);
    return nullptr;
  }
  auto* const w = reinterpret_cast<Walled*>(reinterpret_cast<std::byte*>(r) - front);
  w->pages = pages;
  w->bytes = bytes;
  w->size = size;
  w->in_use = true;
  w->aligned = false;
  if ((debug & debug_deadbeef) != 0) {
    fill(pointer_to(round_down(address_of(object), sizeof(std::uint64_t))),
         min_of<std::uint64_t>(round_down(size + gap, sizeof(std::uint64_t)),
                               min_of<std::uint64_t>(options.verify, most_filled)),
         fresh_pattern);
  }
  std::memset(object + size, static_cast<int>(gap_byte), gap);
  set_owner(pages, bytes, w);
  note(*r, debug, size, Happened::allocated);
  return object;
}

void* allocate_walled(Cache& c) noexcept {
  void* const object = allocate_walled(&c, c.size, c.align, 0, c.debug);
  if (object == nullptr) return nullptr;
  if (construct(c, object)) {
    c.allocated.add();
    return object;
  }
  Walled& w = *walled_at(object);
  w.in_use = false;
  give_pages(w.pages, w.bytes);
  return nullptr;
}

namespace {

// Whether it is to be freed: with `noabort`, too, if it can be.
bool is_sound(Walled& w, const void* object, const Cache* c, std::size_t size) noexcept {
  const void* const base = w.record.event.object;
  if (object != base) {
    report(Fault::bad_base, c, object, &w.record, {.base = base});
    return false;
  }
  // [F2] one of two that free it at once.
  if (!__atomic_exchange_n(&w.in_use, false, __ATOMIC_ACQ_REL)) {
    report(Fault::duplicate_free, c, object, &w.record);
    return false;
  }
  if (size != w.size) report(Fault::bad_size, c, object, &w.record, {.found = size, .wanted = w.size});
  const auto* const behind = static_cast<const std::byte*>(base) + w.size;
  const std::size_t gap = gap_behind(base, w.size);
  if (!std::all_of(behind, behind + gap, [](std::byte b) { return b == gap_byte; }))
    report(Fault::redzone, c, object, &w.record);
  return true;
}

}  // namespace

bool free_walled(void* object, const Cache* c, std::size_t size) noexcept {
  Walled& w = *walled_at(object);
  if (!is_sound(w, object, c, size)) return false;
  const unsigned debug = c != nullptr ? c->debug : options.debug;
  const LogEntry* const contents = save_contents(w.record, debug, w.size);
  if (c != nullptr && c->destruct != nullptr) c->destruct(object, c->private_data);
  note(w.record, debug, w.size, Happened::freed, contents);
  give_pages(w.pages, w.bytes);
  if (c != nullptr) c->freed.add();
  return true;
}

void firewall_after_fork_in_child() noexcept { busy.store(false, std::memory_order_relaxed); }

}  // namespace terrace::umem
