// SPDX-License-Identifier: MIT OR Apache-2.0
// Quantum caches: what is kept, how it is reported, and when it is freed.
#include "arena_fixture.h"

namespace terrace::vmem {
namespace {

constexpr std::size_t quantum = 16;

TEST(QuantumCaches, a_freed_piece_is_the_next_of_its_size) {
  const OwnArena a(1 << 20, 1 << 16, quantum, 4 * quantum);
  const std::uintptr_t p = a.alloc(40), q = a.alloc(40);
  a.free(p, 40);
  a.free(q, 40);
  EXPECT_EQ(a.alloc(33), q) << "last in, first out; any size of three quanta";
  EXPECT_EQ(a.alloc(48), p);
  a.free(q, 33);
  a.free(p, 48);
}

TEST(QuantumCaches, what_they_hold_counts_as_allocated) {
  const OwnArena a(1 << 20, 1 << 16, quantum, 4 * quantum);
  const std::uintptr_t p = a.alloc(20);
  EXPECT_EQ(walked(a, VMEM_ALLOC), (std::vector<Found>{{p, 20}}));
  a.free(p, 20);
  EXPECT_EQ(walked(a, VMEM_ALLOC), (std::vector<Found>{{p, 32}}));
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC), 32U);
  EXPECT_EQ(a.arena().statistics().cached, 32U);
  EXPECT_EQ(a.arena().statistics().frees, 1U);
  EXPECT_TRUE(a.arena().empty_caches());
  EXPECT_FALSE(a.arena().empty_caches());
  EXPECT_TRUE(walked(a, VMEM_ALLOC).empty());
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC), 0U);
  EXPECT_EQ(a.arena().statistics().cached, 0U);
}

// Whether a piece of the size is kept when it is freed.
bool is_cached(const OwnArena& a, std::size_t size) {
  const std::uintptr_t p = a.alloc(size);
  a.free(p, size);
  const bool kept = a.arena().statistics().cached != 0;
  a.arena().empty_caches();
  return kept;
}

TEST(QuantumCaches, sizes_up_to_the_largest_and_sixteen_quanta) {
  const OwnArena none(1 << 20, 1 << 16, quantum, 0), less(1 << 20, 1 << 16, quantum, quantum - 1),
      four(1 << 20, 1 << 16, quantum, 5 * quantum - 1), all(1 << 20, 1 << 16, quantum, ~std::size_t{0});
  EXPECT_FALSE(is_cached(none, 1));
  EXPECT_FALSE(is_cached(less, 1));
  EXPECT_TRUE(is_cached(four, 1));
  EXPECT_TRUE(is_cached(four, 4 * quantum));
  EXPECT_FALSE(is_cached(four, 4 * quantum + 1));
  EXPECT_TRUE(is_cached(all, 16 * quantum));
  EXPECT_FALSE(is_cached(all, 16 * quantum + 1));
}

TEST(QuantumCaches, keep_sixteen_pieces_of_a_size) {
  const OwnArena a(1 << 20, 1 << 16, quantum, quantum);
  std::vector<std::uintptr_t> pieces;
  for (int i = 0; i < 40; ++i) pieces.push_back(a.alloc(quantum));
  for (const std::uintptr_t p : pieces) a.free(p, quantum);
  EXPECT_EQ(a.arena().statistics().cached, 16 * quantum);
  EXPECT_EQ(vmem_size(a, VMEM_ALLOC), 16 * quantum);
}

TEST(QuantumCaches, neither_serve_nor_take_pieces_with_constraints) {
  const OwnArena a(1 << 20, 1 << 16, quantum, 4 * quantum);
  const std::uintptr_t p = a.alloc(quantum);
  a.free(p, quantum);
  void* const q = vmem_xalloc(a, quantum, 0, 0, 0, nullptr, nullptr, VM_NOSLEEP);
  EXPECT_NE(address_of(q), p);
  vmem_xfree(a, q, quantum);
  EXPECT_EQ(a.arena().statistics().cached, quantum);
  EXPECT_EQ(vmem_xalloc(a, quantum, 0, 0, 0, at(p), at(p + quantum), VM_NOSLEEP), at(p)) << "emptied before it fails";
  vmem_xfree(a, at(p), quantum);
}

TEST(QuantumCaches, are_emptied_before_a_request_fails) {
  const OwnArena a(1 << 20, 10 * quantum, quantum, quantum);
  std::vector<std::uintptr_t> pieces;
  for (int i = 0; i < 10; ++i) pieces.push_back(a.alloc(quantum));
  for (const std::uintptr_t p : pieces) a.free(p, quantum);
  EXPECT_EQ(vmem_size(a, VMEM_FREE), 0U);
  EXPECT_EQ(a.alloc(10 * quantum), std::uintptr_t{1} << 20);
  EXPECT_EQ(a.arena().statistics().failures, 0U);
  EXPECT_EQ(a.alloc(1), 0U);
  a.free(std::uintptr_t{1} << 20, 10 * quantum);
}

TEST(QuantumCaches, emptied_spans_let_the_source_serve) {
  CountingSource source;
  source.left = 4 * quantum;
  const OwnArena a(source.importer(quantum, 4 * quantum));
  std::vector<std::uintptr_t> pieces;
  for (int i = 0; i < 4; ++i) pieces.push_back(a.alloc(quantum));
  for (const std::uintptr_t p : pieces) a.free(p, quantum);
  EXPECT_EQ(source.left, 0U);
  const std::uintptr_t whole = a.alloc(4 * quantum);
  EXPECT_NE(whole, 0U) << "four spans went back, one came";
  EXPECT_EQ(source.given, (std::vector<Found>{{whole, 4 * quantum}}));
  a.free(whole, 4 * quantum);
}

TEST(QuantumCaches, are_emptied_before_panic) {
  CountingSource source;
  source.left = quantum;
  const OwnArena a(source.importer(quantum, quantum));
  const std::uintptr_t p = a.alloc(quantum);
  a.free(p, quantum);
  void* const q = vmem_xalloc(a, quantum, 0, 0, 0, nullptr, nullptr, VM_PANIC);
  EXPECT_NE(q, nullptr);
  vmem_xfree(a, q, quantum);
}

TEST(QuantumCaches, destroying_the_arena_gives_their_spans_back) {
  CountingSource source;
  {
    const OwnArena a(source.importer(quantum, 4 * quantum));
    const std::uintptr_t p = a.alloc(quantum);
    a.free(p, quantum);
    EXPECT_EQ(source.given.size(), 1U);
  }
  EXPECT_TRUE(source.given.empty());
}

}  // namespace
}  // namespace terrace::vmem
