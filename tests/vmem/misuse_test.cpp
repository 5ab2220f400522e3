// SPDX-License-Identifier: MIT OR Apache-2.0
// What ends the process, with which line; and what is only told.
#include "arena_fixture.h"

namespace terrace::vmem {
namespace {

class MisuseDeathTest : public testing::Test {
 protected:
  static vmem_t* arena(std::size_t qcache_max) {
    vmem_t* const vmp = vmem_create("ports", at(0x1000), 0x1000, 16, nullptr, nullptr, nullptr, qcache_max, VM_NOSLEEP);
    EXPECT_EQ(vmem_alloc(vmp, 100, VM_NOSLEEP), at(0x1000));
    return vmp;
  }
  void TearDown() override {
    for (vmem_t* const vmp : {plain_, cached_}) {
      vmem_free(vmp, at(0x1000), 100);
      vmem_destroy(vmp);
    }
  }
  vmem_t *const plain_ = arena(0), *const cached_ = arena(128);
};

TEST_F(MisuseDeathTest, free_of_what_was_not_allocated) {
  EXPECT_DEATH(vmem_free(plain_, at(0x1070), 16),
               "^terrace: vmem_free\\(\\): bad free of 0x1070, 16 bytes, in arena 'ports'\n$");
  EXPECT_DEATH(vmem_xfree(plain_, at(0x1010), 84),
               "^terrace: vmem_xfree\\(\\): bad free of 0x1010, 84 bytes, in arena 'ports'\n$");
  EXPECT_DEATH(vmem_free(plain_, nullptr, 1), "bad free of 0x0, 1 bytes, in arena 'ports'\n");
  EXPECT_DEATH(vmem_free(plain_, at(0x9000), 100), "bad free of 0x9000, 100 bytes");
}

TEST_F(MisuseDeathTest, double_free_into_the_arena_and_into_a_quantum_cache) {
  for (vmem_t* const vmp : {plain_, cached_}) {
    void* const p = vmem_alloc(vmp, 32, VM_NOSLEEP);
    vmem_free(vmp, p, 32);
    EXPECT_DEATH(vmem_free(vmp, p, 32), "bad free of 0x1070, 32 bytes, in arena 'ports'\n");
    EXPECT_DEATH(vmem_xfree(vmp, p, 32), "bad free of 0x1070, 32 bytes, in arena 'ports'\n");
  }
}

TEST_F(MisuseDeathTest, wrong_size) {
  for (vmem_t* const vmp : {plain_, cached_}) {
    EXPECT_DEATH(vmem_free(vmp, at(0x1000), 112),
                 "^terrace: vmem_free\\(\\): wrong size 112 of 0x1000, which has 100 bytes, in arena 'ports'\n$");
    EXPECT_DEATH(vmem_xfree(vmp, at(0x1000), 16), "vmem_xfree\\(\\): wrong size 16 of 0x1000, which has 100 bytes");
    EXPECT_DEATH(vmem_free(vmp, at(0x1000), 0), "wrong size 0 of 0x1000");
  }
  vmem_free(cached_, at(0x1000), 100);
  EXPECT_EQ(vmem_alloc(cached_, 110, VM_NOSLEEP), at(0x1000));
  EXPECT_DEATH(vmem_free(cached_, at(0x1000), 100), "wrong size 100 of 0x1000, which has 110 bytes")
      << "of its last allocation";
  vmem_free(cached_, at(0x1000), 110);
  EXPECT_EQ(vmem_alloc(cached_, 100, VM_NOSLEEP), at(0x1000));
}

TEST_F(MisuseDeathTest, panic_where_there_is_nothing) {
  EXPECT_DEATH(vmem_alloc(plain_, 0x2000, VM_PANIC), "^terrace: vmem_alloc\\(\\): arena 'ports' can not give 8192 bytes\n$");
  EXPECT_DEATH(vmem_alloc(plain_, ~std::size_t{0}, VM_PANIC), "can not give 18446744073709551615 bytes");
  EXPECT_DEATH(vmem_xalloc(plain_, 16, 0, 0, 0, at(0x5000), nullptr, VM_PANIC),
               "vmem_xalloc\\(\\): arena 'ports' can not give 16");
  EXPECT_DEATH(vmem_xalloc(plain_, 16, 3, 0, 0, nullptr, nullptr, VM_PANIC),
               "vmem_xalloc\\(\\): arena 'ports' can not give 16");
  EXPECT_DEATH(vmem_add(plain_, at(0x1000), 16, VM_PANIC), "vmem_add\\(\\): arena 'ports' can not give 16 bytes\n");
  EXPECT_DEATH(vmem_create("x", nullptr, 0, 3, nullptr, nullptr, nullptr, 0, VM_PANIC),
               "vmem_create\\(\\): arena 'x' can not give 0");
  EXPECT_DEATH(vmem_create("x", at(1), 4, 4, nullptr, nullptr, nullptr, 0, VM_PANIC),
               "vmem_add\\(\\): arena 'x' can not give 4");
  EXPECT_DEATH(vmem_create(nullptr, at(1), 4, 1, nullptr, nullptr, nullptr, 0, VM_PANIC),
               "vmem_create\\(\\): arena '' can not give 4");
}

void* misaligned(vmem_t*, std::size_t, int) { return at(0x10008); }
void* always_the_same(vmem_t*, std::size_t, int) { return at(0x10000); }

TEST(SourceDeathTest, returns_what_can_not_be) {
  vmem_t* const crooked = vmem_create("crooked", nullptr, 0, 16, misaligned, nullptr, nullptr, 0, VM_NOSLEEP);
  EXPECT_DEATH(
      vmem_alloc(crooked, 40, VM_NOSLEEP),
      "^terrace: vmem_alloc\\(\\): the source of arena 'crooked' has returned 0x10008, 48 bytes: not in whole quanta of "
      "the arena\n$");
  vmem_destroy(crooked);
  vmem_t* const twice = vmem_create("twice", nullptr, 0, 16, always_the_same, nullptr, nullptr, 0, VM_NOSLEEP);
  EXPECT_EQ(vmem_alloc(twice, 48, VM_NOSLEEP), at(0x10000));
  EXPECT_DEATH(vmem_alloc(twice, 16, VM_NOSLEEP), "has returned 0x10000, 16 bytes: the arena has some of it already\n");
  vmem_free(twice, at(0x10000), 48);
  vmem_destroy(twice);
}

TEST(DestroyDeathTest, of_a_source_in_use) {
  const OwnArena source(16, 160, 16);
  const OwnArena importer(vmem_create("importer", nullptr, 0, 16, vmem_alloc, vmem_free, source, 0, VM_NOSLEEP));
  EXPECT_DEATH(vmem_destroy(source), "^terrace: vmem_destroy\\(\\): arena 'test' is the source of arena 'importer'\n$");
}

TEST(Destroy, tells_of_what_was_not_freed) {
  CountingSource source;
  vmem_t* const a = source.importer(16);
  ASSERT_NE(vmem_alloc(a, 20, VM_NOSLEEP), nullptr);
  ASSERT_NE(vmem_alloc(a, 20, VM_NOSLEEP), nullptr);
  testing::internal::CaptureStderr();
  vmem_destroy(a);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "terrace: vmem_destroy(): 64 bytes of arena 'importer' were not freed\n");
  EXPECT_EQ(source.given.size(), 2U) << "somebody may still use them";
}

TEST(WalkDeathTest, without_reentrance_the_arena_is_locked) {
  if (!assertions) GTEST_SKIP() << "a build without assertions waits for itself";
  const OwnArena a(16, 160, 16);
  const auto use = [](void* vmp, void*, std::size_t) { vmem_size(static_cast<vmem_t*>(vmp), VMEM_ALLOC); };
  EXPECT_DEATH(vmem_walk(a, VMEM_FREE, use, static_cast<vmem_t*>(a)), "lock order: waits for an arena and holds an arena\n");
}

}  // namespace
}  // namespace terrace::vmem
