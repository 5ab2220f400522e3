// SPDX-License-Identifier: MIT OR Apache-2.0
// Making arenas, giving them spans, and the list of all arenas.
#include "arena_fixture.h"
#include "base/types.h"
#include "os/metadata.h"

#include <algorithm>
#include <cstring>

namespace terrace::vmem {
namespace {

vmem_t* create(const char* name, std::uintptr_t base, std::size_t size, std::size_t quantum) {
  errno = 0;
  return vmem_create(name, at(base), size, quantum, nullptr, nullptr, nullptr, 0, VM_SLEEP);
}

TEST(VmemCreate, refuses_what_is_no_arena) {
  EXPECT_EQ(create(nullptr, 0, 0, 1), nullptr);
  EXPECT_EQ(errno, EINVAL);
  for (const std::size_t quantum : {0, 3, 4095}) {
    EXPECT_EQ(create("a", 0, 0, quantum), nullptr) << quantum;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST(VmemCreate, refuses_a_first_span_that_is_none) {
  const Found spans[] = {{0, 16},                         // address 0
                         {16, 0},                         // empty
                         {24, 16},                        // begins in the middle of a quantum
                         {16, 24},                        // ends there
                         {~std::uintptr_t{0} - 15, 16}};  // ends at 2^64
  for (const Found& span : spans) {
    EXPECT_EQ(create("a", span.start, span.size, 16), nullptr) << span.start;
    EXPECT_EQ(errno, EINVAL);
  }
  const OwnArena last(~std::uintptr_t{0} - 31, 16, 16);
  EXPECT_EQ(last.alloc(16), ~std::uintptr_t{0} - 31);
  last.free(~std::uintptr_t{0} - 31, 16);
}

TEST(VmemCreate, an_arena_without_span_is_empty) {
  const OwnArena a(0, 0, 8);
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC | VMEM_FREE), 0U);
  errno = 0;
  EXPECT_EQ(vmem_alloc(a, 1, VM_NOSLEEP), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(vmem_contains(a, at(8), 8), 0);
}

TEST(VmemCreate, names_are_copied_and_cut) {
  char name[100];
  std::memset(name, 'x', sizeof name);
  name[99] = '\0';
  vmem_t* const vmp = create(name, 0, 0, 1);
  ASSERT_NE(vmp, nullptr);
  name[0] = 'y';
  EXPECT_EQ(std::string(arena_of(vmp).name()), std::string(31, 'x'));
  vmem_destroy(vmp);
}

TEST(VmemAdd, spans_that_touch_stay_apart) {
  const OwnArena a(100, 10, 1);
  EXPECT_EQ(vmem_add(a, at(110), 10, VM_NOSLEEP), at(110));
  EXPECT_EQ(vmem_add(a, at(50), 50, VM_NOSLEEP), at(50));
  EXPECT_EQ(walked(a, VMEM_SPAN), (std::vector<Found>{{50, 50}, {100, 10}, {110, 10}}));
  EXPECT_EQ(walked(a, VMEM_FREE), (std::vector<Found>{{50, 50}, {100, 10}, {110, 10}}));
  EXPECT_EQ(vmem_size(a, VMEM_FREE), 70U);
  EXPECT_EQ(a.alloc(51), 0U) << "no piece lies across two spans";
  EXPECT_STREQ(a.arena().check_invariants(), nullptr);
}

TEST(VmemAdd, refuses_what_overlaps_and_leaves_the_arena_as_it_was) {
  const OwnArena a(100, 10, 1);
  for (const Found& span : {Found{100, 10}, Found{90, 11}, Found{109, 1}, Found{102, 3}, Found{50, 100}}) {
    errno = 0;
    EXPECT_EQ(vmem_add(a, at(span.start), span.size, VM_NOSLEEP), nullptr) << span.start;
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_EQ(walked(a, VMEM_SPAN), (std::vector<Found>{{100, 10}}));
}

TEST(VmemAdd, a_thousand_spans_in_any_order_are_found) {
  const OwnArena a(0, 0, 1);
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    const std::uintptr_t start = 10 + (i * 367) % 1000 * 10;
    ASSERT_EQ(vmem_add(a, at(start), 5, VM_NOSLEEP), at(start));
  }
  ASSERT_STREQ(a.arena().check_invariants(), nullptr);
  for (std::uintptr_t i = 0; i < 1000; ++i) {
    const std::uintptr_t start = 10 + i * 10;
    EXPECT_EQ(vmem_contains(a, at(start), 5), 1);
    EXPECT_EQ(vmem_contains(a, at(start + 4), 1), 1);
    EXPECT_EQ(vmem_contains(a, at(start + 4), 2), 0);
    EXPECT_EQ(vmem_contains(a, at(start + 5), 1), 0);
    EXPECT_EQ(vmem_contains(a, at(start - 1), 2), 0);
  }
}

TEST(VmemContains, lies_in_one_span_whether_it_is_allocated_or_not) {
  const OwnArena a(100, 10, 1);
  EXPECT_EQ(a.alloc(4), 100U);
  EXPECT_EQ(vmem_contains(a, at(102), 4), 1);
  EXPECT_EQ(vmem_contains(a, at(100), 11), 0);
  EXPECT_EQ(vmem_contains(a, at(100), ~std::size_t{0}), 0);
  EXPECT_EQ(vmem_contains(a, at(1), 1), 0);
  a.free(100, 4);
}

TEST(VmemSize, is_in_whole_quanta) {
  const OwnArena a(4096, 10 * 4096, 4096);
  const std::uintptr_t p = a.alloc(100), q = a.alloc(4097);
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC), 3 * 4096U);
  EXPECT_EQ(vmem_size(a, VMEM_FREE), 7 * 4096U);
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC | VMEM_FREE), 10 * 4096U);
  EXPECT_EQ(vmem_size(a, VMEM_SPAN | VMEM_ROTOR), 0U);
  a.free(p, 100);
  a.free(q, 4097);
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC), 0U);
}

TEST(Statistics, count_what_happens) {
  const OwnArena a(1, 100, 1);
  const std::uintptr_t p = a.alloc(60), q = a.alloc(40);
  EXPECT_EQ(a.alloc(1), 0U);
  a.free(p, 60);
  const ArenaStatistics s = a.arena().statistics();
  EXPECT_EQ(s.in_use, 40U);
  EXPECT_EQ(s.total, 100U);
  EXPECT_EQ(s.imported, 0U);
  EXPECT_EQ(s.allocations, 2U);
  EXPECT_EQ(s.frees, 1U);
  EXPECT_EQ(s.failures, 1U);
  a.free(q, 40);
}

std::vector<const Arena*> listed() {
  std::vector<const Arena*> all;
  arenas.for_each([&all](const Arena& a) { all.push_back(&a); });
  return all;
}

TEST(List, has_every_arena_in_the_order_of_addresses) {
  const std::size_t before = listed().size();
  {
    const OwnArena a(1, 1, 1), b(1, 1, 1), c(1, 1, 1);
    const std::vector<const Arena*> all = listed();
    EXPECT_EQ(all.size(), before + 3);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    EXPECT_NE(std::find(all.begin(), all.end(), &b.arena()), all.end());
  }
  EXPECT_EQ(listed().size(), before);
}

TEST(List, memory_of_destroyed_arenas_is_used_again) {
  { const OwnArena first(1, 1, 1); }
  const std::uint64_t mapped = os::metadata_bytes(os::Metadata::arenas);
  for (int i = 0; i < 1000; ++i) {
    const OwnArena a(1, 100000, 1);
    std::vector<std::uintptr_t> pieces;
    for (int n = 0; n < 300; ++n) pieces.push_back(a.alloc(2));
    for (const std::uintptr_t p : pieces) a.free(p, 2);
  }
  EXPECT_LE(os::metadata_bytes(os::Metadata::arenas), mapped + 2 * 64 * kib + 16 * kib);
}

TEST(HeapArena, is_one_and_gives_memory) {
  vmem_alloc_t* allocate = nullptr;
  vmem_free_t* give = nullptr;
  vmem_t* const heap = vmem_heap_arena(&allocate, &give);
  ASSERT_NE(heap, nullptr);
  EXPECT_EQ(vmem_heap_arena(nullptr, nullptr), heap);
  EXPECT_EQ(allocate, vmem_alloc);
  EXPECT_EQ(give, vmem_free);
  const std::size_t page = os::page_size(), sizes[] = {page, 10 * page, 4 * mib};
  std::vector<void*> pieces;
  for (const std::size_t size : sizes) {
    pieces.push_back(allocate(heap, size, VM_NOSLEEP));
    ASSERT_NE(pieces.back(), nullptr);
    EXPECT_EQ(address_of(pieces.back()) % page, 0U);
    std::memset(pieces.back(), 0xa5, size);
  }
  EXPECT_GE(vmem_size(heap, VMEM_ALLOC | VMEM_FREE), 5 * mib);
  for (std::size_t i = 0; i < pieces.size(); ++i) give(heap, pieces[i], sizes[i]);
  EXPECT_EQ(vmem_size(heap, VMEM_ALLOC | VMEM_FREE), 0U) << "free spans go back to the system";
  EXPECT_STREQ(arena_of(heap).check_invariants(), nullptr);
}

TEST(HeapArena, refuses_more_than_there_is) {
  vmem_t* const heap = vmem_heap_arena(nullptr, nullptr);
  for (const std::size_t size : {std::size_t{1} << 62, ~std::size_t{0} / 2, ~std::size_t{0}}) {
    errno = 0;
    EXPECT_EQ(vmem_alloc(heap, size, VM_NOSLEEP), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
  EXPECT_EQ(vmem_size(heap, VMEM_ALLOC | VMEM_FREE), 0U);
}

}  // namespace
}  // namespace terrace::vmem
