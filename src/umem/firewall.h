// SPDX-License-Identifier: MIT OR Apache-2.0
// `firewall=N`: an object of N bytes or more has pages of its own and ends at an inaccessible page. A read or write behind it
// is SIGSEGV at that instruction, and so is any use after free.
//
// What no cache serves has such pages as soon as objects are looked at.
//
//   | guard | gap | object | rest of its page: 0xbb | guard |      pages of one zone, which is 1 GiB of addresses
//
// Addresses are used again when all others of their zone have been (VM_NEXTFIT). Until then a freed object's description stays,
// by which a second free is known.
#pragma once

#include "umem/debug.h"

#include <atomic>

namespace terrace::umem {

struct Walled {
  std::byte* pages;
  std::size_t bytes;  // of pages, with the guard
  std::size_t size;   // of the object
  bool in_use;
  bool aligned;  // memory of umem_alloc_align()
  Record record;
};

/// Reserved addresses, and the owner of each page.
struct Zone {
  std::byte* base;
  std::size_t bytes;
  vmem_t* addresses;
  std::atomic<Walled*>* by_page;
  bool one_mapping;  // guards are in it; else each object has mappings of its own
  bool contains(const void* p) const noexcept { return address_of(p) - address_of(base) < bytes; }
};

/// All zones there are. A debugger reads them.
struct Walls {
  static constexpr unsigned most = 256;
  std::atomic<unsigned> count{0};
  Zone zones[most] = {};
};
extern Walls walls __attribute__((visibility("hidden")));

/// The description of the object, in use or not, whose pages, or guard, p lies in; null: none's.
Walled* walled_at(const void* p) noexcept;

/// Memory by size, of which byte `before` is at a multiple of `align`, and is the first that the guard's distance is measured
/// from. `cache`: null for what is larger than any. Null: no memory, or too many mappings.
void* allocate_walled(const Cache* cache, std::size_t size, std::size_t align, std::size_t before, unsigned debug) noexcept;
/// Whether one more may be had without what the program is left with becoming too little, where each takes mappings.
bool may_be_walled() noexcept;
/// A constructed object, which the cache counts.
void* allocate_walled(Cache& cache) noexcept;
/// Reports a fault of the object, if any. Requires walled_at(object). `size`: as the program has it. The cache counts it.
/// False: it is not freed.
bool free_walled(void* object, const Cache* cache, std::size_t size) noexcept;

void firewall_after_fork_in_child() noexcept;

}  // namespace terrace::umem
