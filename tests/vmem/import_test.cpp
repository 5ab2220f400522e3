// SPDX-License-Identifier: MIT OR Apache-2.0
// Spans from a source and back: by counting functions, and from arena to arena.
#include "arena_fixture.h"

namespace terrace::vmem {
namespace {

TEST(Import, takes_what_is_needed_and_gives_it_back_when_it_is_free) {
  CountingSource source;
  const OwnArena a(source.importer(4096));
  const std::uintptr_t p = a.alloc(100), q = a.alloc(8192);
  EXPECT_EQ(source.given, (std::vector<Found>{{p, 4096}, {q, 8192}}));
  EXPECT_EQ(a.arena().statistics().imported, 12288U);
  EXPECT_EQ(walked(a, VMEM_SPAN), source.given);
  a.free(p, 100);
  EXPECT_EQ(source.given, (std::vector<Found>{{q, 8192}}));
  a.free(q, 8192);
  EXPECT_TRUE(source.given.empty());
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC | VMEM_FREE), 0U);
  EXPECT_EQ(a.arena().statistics().imported, 0U);
}

TEST(Import, a_span_in_use_serves_before_the_source_is_asked) {
  CountingSource source;
  const OwnArena a(source.importer(1));
  const std::uintptr_t p = a.alloc(100);
  const std::uintptr_t q = address_of(vmem_xalloc(a, 10, 64, 0, 0, nullptr, nullptr, VM_NOSLEEP));
  EXPECT_EQ(source.takes, 2U) << "the first span has no room";
  const std::uintptr_t r = a.alloc(20);
  EXPECT_EQ(source.takes, 2U) << "what the alignment has left in the second is used";
  a.free(q, 10);
  EXPECT_EQ(source.gives, 0U);
  a.free(r, 20);
  EXPECT_EQ(source.gives, 1U);
  a.free(p, 100);
  EXPECT_EQ(source.gives, 2U);
}

TEST(Import, brings_enough_for_any_alignment_and_phase) {
  CountingSource source;
  source.next = 0x123000;
  const OwnArena a(source.importer(4096));
  for (std::size_t align = 4096; align <= 1 << 24; align *= 2) {
    for (const std::size_t phase : {std::size_t{0}, align / 2 / 4096 * 4096, align - 4096}) {
      const std::uintptr_t p = address_of(vmem_xalloc(a, 5000, align, phase, 0, nullptr, nullptr, VM_NOSLEEP));
      ASSERT_NE(p, 0U);
      EXPECT_EQ(p % align, phase);
      ASSERT_STREQ(a.arena().check_invariants(), nullptr);
      vmem_xfree(a, at(p), 5000);
      ASSERT_TRUE(source.given.empty());
    }
  }
}

TEST(Import, is_not_tried_where_the_address_matters) {
  CountingSource source;
  const OwnArena a(source.importer(1));
  errno = 0;
  EXPECT_EQ(vmem_xalloc(a, 8, 8, 0, 64, nullptr, nullptr, VM_NOSLEEP), nullptr);
  EXPECT_EQ(vmem_xalloc(a, 8, 8, 0, 0, at(1), nullptr, VM_NOSLEEP), nullptr);
  EXPECT_EQ(vmem_xalloc(a, 8, 8, 0, 0, nullptr, at(1 << 30), VM_NOSLEEP), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(source.takes, 0U);
  const std::uintptr_t p = a.alloc(100);
  EXPECT_EQ(address_of(vmem_xalloc(a, 8, 8, 0, 64, at(p), at(p + 1), VM_NOSLEEP)), 0U);
  a.free(p, 100);
}

TEST(Import, a_source_that_has_nothing_is_enomem) {
  CountingSource source;
  source.left = 8192;
  const OwnArena a(source.importer(4096));
  const std::uintptr_t p = a.alloc(8192);
  errno = 0;
  EXPECT_EQ(a.alloc(1), 0U);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(a.arena().statistics().failures, 1U);
  a.free(p, 8192);
  const std::uintptr_t q = a.alloc(1);
  EXPECT_NE(q, 0U);
  a.free(q, 1);
}

TEST(Import, flags_are_passed_on_without_policy_and_panic) {
  CountingSource source;
  const OwnArena a(source.importer(1));
  const std::uintptr_t p = a.alloc(1, VM_NOSLEEP | VM_BESTFIT);
  EXPECT_EQ(source.flags, VM_NOSLEEP);
  const std::uintptr_t q = a.alloc(1, VM_PANIC | VM_NEXTFIT);
  EXPECT_EQ(source.flags, VM_SLEEP);
  a.free(p, 1);
  a.free(q, 1);
}

TEST(Import, spans_stay_where_nobody_takes_them_back) {
  CountingSource source;
  const OwnArena a(source.importer(1, 0, nullptr));
  const std::uintptr_t p = a.alloc(100);
  a.free(p, 100);
  EXPECT_EQ(vmem_size(a, VMEM_FREE), 100U);
  EXPECT_EQ(a.alloc(100), p);
  EXPECT_EQ(source.takes, 1U);
  a.free(p, 100);
}

TEST(Import, spans_that_were_added_stay) {
  CountingSource source;
  const OwnArena a(source.importer(1));
  ASSERT_NE(vmem_add(a, at(16), 100, VM_NOSLEEP), nullptr);
  EXPECT_EQ(a.alloc(100), 16U);
  const std::uintptr_t p = a.alloc(50);
  a.free(16, 100);
  a.free(p, 50);
  EXPECT_EQ(source.gives, 1U);
  EXPECT_EQ(walked(a, VMEM_SPAN), (std::vector<Found>{{16, 100}}));
}

TEST(Import, spans_that_touch_go_back_one_by_one) {
  CountingSource source;
  const OwnArena a(source.importer(0x1000));
  std::vector<std::uintptr_t> pieces;
  for (int i = 0; i < 4; ++i) {
    source.next = 0x100000 + static_cast<std::uintptr_t>(i) * 0x1000;  // no gap
    pieces.push_back(a.alloc(0x1000));
  }
  for (const int i : {1, 2, 0, 3}) {
    a.free(pieces[static_cast<std::size_t>(i)], 0x1000);
    ASSERT_STREQ(a.arena().check_invariants(), nullptr);
  }
  EXPECT_EQ(source.gives, 4U);
}

TEST(Import, through_a_chain_of_arenas_and_back) {
  CountingSource source;
  const OwnArena outer(source.importer(65536));
  const OwnArena middle(vmem_create("middle", nullptr, 0, 4096, vmem_alloc, vmem_free, outer, 0, VM_NOSLEEP));
  const OwnArena inner(vmem_create("inner", nullptr, 0, 16, vmem_alloc, vmem_free, middle, 0, VM_NOSLEEP));
  std::vector<std::uintptr_t> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(inner.alloc(48));
  for (const std::uintptr_t p : pieces) ASSERT_EQ(vmem_contains(middle, at(p), 48), 1);
  EXPECT_EQ(vmem_size(inner, VMEM_ALLOC | VMEM_FREE), vmem_size(middle, VMEM_ALLOC));
  EXPECT_EQ(vmem_size(middle, VMEM_ALLOC | VMEM_FREE), vmem_size(outer, VMEM_ALLOC));
  for (const OwnArena* a : {&inner, &middle, &outer}) ASSERT_STREQ(a->arena().check_invariants(), nullptr);
  EXPECT_EQ(inner.arena().source(), static_cast<vmem_t*>(middle));
  for (const std::uintptr_t p : pieces) inner.free(p, 48);
  EXPECT_TRUE(source.given.empty());
}

TEST(Import, from_an_arena_is_in_its_quanta) {
  const OwnArena outer(1 << 20, 1 << 20, 4096);
  const OwnArena inner(vmem_create("inner", nullptr, 0, 16, vmem_alloc, vmem_free, outer, 0, VM_NOSLEEP));
  const std::uintptr_t p = inner.alloc(20);
  EXPECT_EQ(walked(inner, VMEM_SPAN), (std::vector<Found>{{p, 4096}}));
  EXPECT_EQ(inner.alloc(4096 - 32), p + 32) << "the rest of the page is used";
  void* const q = vmem_xalloc(inner, 20, 4096, 0, 0, nullptr, nullptr, VM_NOSLEEP);
  EXPECT_EQ(address_of(q) % 4096, 0U);
  void* const r = vmem_xalloc(inner, 20, 1024, 1008, 0, nullptr, nullptr, VM_NOSLEEP);
  EXPECT_EQ(address_of(r) % 1024, 1008U);
  EXPECT_EQ(vmem_size(outer, VMEM_ALLOC), 2 * 4096U) << "a page is at a multiple of all alignments up to a page";
  void* const s = vmem_xalloc(inner, 4096, 16384, 4112, 0, nullptr, nullptr, VM_NOSLEEP);
  EXPECT_EQ(address_of(s) % 16384, 4112U);
  inner.free(p, 20);
  inner.free(p + 32, 4096 - 32);
  vmem_xfree(inner, q, 20);
  vmem_xfree(inner, r, 20);
  vmem_xfree(inner, s, 4096);
  EXPECT_EQ(vmem_size(outer, VMEM_ALLOC), 0U);
}

TEST(Import, from_an_arena_is_no_longer_than_the_piece) {
  const OwnArena outer(0x12000, 1 << 20, 4096);
  const OwnArena inner(vmem_create("inner", nullptr, 0, 16, vmem_alloc, vmem_free, outer, 0, VM_NOSLEEP));
  void* const p = vmem_xalloc(inner, 4096, 1 << 16, 0, 0, nullptr, nullptr, VM_NOSLEEP);
  EXPECT_EQ(address_of(p) % (1 << 16), 0U);
  EXPECT_EQ(walked(inner, VMEM_SPAN), (std::vector<Found>{{address_of(p), 4096}}));
  vmem_xfree(inner, p, 4096);
  void* const q = vmem_xalloc(inner, 4096, 1 << 16, 0x3010, 0, nullptr, nullptr, VM_NOSLEEP);
  EXPECT_EQ(address_of(q) % (1 << 16), 0x3010U);
  EXPECT_EQ(walked(inner, VMEM_SPAN), (std::vector<Found>{{address_of(q) - 0x10, 8192}}));
  vmem_xfree(inner, q, 4096);
  EXPECT_EQ(vmem_size(outer, VMEM_ALLOC), 0U);
}

TEST(Import, from_an_arena_of_a_smaller_quantum) {
  const OwnArena outer(0x13000, 1 << 20, 4096);
  const OwnArena inner(vmem_create("inner", nullptr, 0, 1 << 16, vmem_alloc, vmem_free, outer, 0, VM_NOSLEEP));
  for (int i = 0; i < 5; ++i) {
    const std::uintptr_t p = inner.alloc(100);
    ASSERT_NE(p, 0U);
    EXPECT_EQ(p % (1 << 16), 0U);
  }
  EXPECT_EQ(vmem_size(outer, VMEM_ALLOC), 5U << 16);
  for (const Found& f : walked(inner, VMEM_ALLOC)) inner.free(f.start, f.size);
}

// Whose functions use the arena that calls them: it is not locked.
struct Nosy {
  vmem_t* arena = nullptr;
  static void* take(vmem_t* self, std::size_t size, int) {
    EXPECT_EQ(vmem_size(reinterpret_cast<Nosy*>(self)->arena, VMEM_ALLOC | VMEM_FREE), 0U);
    return size == 4096 ? at(0x10000) : nullptr;
  }
  static void give(vmem_t* self, void* start, std::size_t size) {
    EXPECT_EQ(vmem_contains(reinterpret_cast<Nosy*>(self)->arena, start, size), 0) << "it is not the arena's any more";
  }
};

TEST(Import, functions_of_the_source_may_use_the_arena) {
  Nosy nosy;
  const OwnArena a(vmem_create("a", nullptr, 0, 4096, Nosy::take, Nosy::give, reinterpret_cast<vmem_t*>(&nosy), 0, VM_NOSLEEP));
  nosy.arena = a;
  const std::uintptr_t p = a.alloc(1);
  EXPECT_EQ(p, 0x10000U);
  a.free(p, 1);
}

TEST(Import, a_million_bytes_at_least_for_the_heap_and_less_where_that_is_refused) {
  vmem_t* const heap = vmem_heap_arena(nullptr, nullptr);
  void* const p = vmem_alloc(heap, 1, VM_NOSLEEP);
  EXPECT_EQ(vmem_size(heap, VMEM_ALLOC | VMEM_FREE), std::size_t{1} << 20);
  vmem_free(heap, p, 1);
  CountingSource source;
  source.left = 100;
  Arena* const a =
      arenas.create("least", 1, 0, {.arena = source.handle(), .take = source.take, .give = source.give, .least = 1000});
  ASSERT_NE(a, nullptr);
  const OwnArena own(public_name(*a));
  const std::uintptr_t q = own.alloc(60);
  EXPECT_EQ(source.given, (std::vector<Found>{{q, 60}}));
  EXPECT_EQ(source.takes, 2U);
  own.free(q, 60);
}

}  // namespace
}  // namespace terrace::vmem
