// SPDX-License-Identifier: MIT OR Apache-2.0
// A system that has no memory for arenas' own data: everything fails whole, and works again afterwards.
#include "arena_fixture.h"
#include "os/metadata.h"

namespace terrace::vmem {
namespace {

bool short_of_memory = false;
int refused = 0;

class Shortage {
 public:
  Shortage() { short_of_memory = true; }
  ~Shortage() { short_of_memory = false; }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;
};

}  // namespace
}  // namespace terrace::vmem

extern "C" {
// NOLINTBEGIN: the linker's names
void* __real__ZN7terrace2os12map_metadataENS0_8MetadataEm(terrace::os::Metadata purpose, std::size_t bytes) noexcept;
void* __wrap__ZN7terrace2os12map_metadataENS0_8MetadataEm(terrace::os::Metadata purpose, std::size_t bytes) noexcept {
  if (!terrace::vmem::short_of_memory) return __real__ZN7terrace2os12map_metadataENS0_8MetadataEm(purpose, bytes);
  ++terrace::vmem::refused;
  return nullptr;
}
// NOLINTEND
}

namespace terrace::vmem {
namespace {

TEST(Shortage, an_arena_can_not_be_made) {
  const Shortage shortage;
  errno = 0;
  std::vector<vmem_t*> made;  // in memory of arenas that other tests have destroyed
  while (vmem_t* const vmp = vmem_create("a", nullptr, 0, 1, nullptr, nullptr, nullptr, 0, VM_NOSLEEP)) made.push_back(vmp);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_GT(refused, 0);
  for (vmem_t* const vmp : made) vmem_destroy(vmp);
}

// Takes all segments that are left in the pool.
class Drained {
 public:
  Drained() {
    while (segment_pool.take(segments_, 1)) continue;
  }
  ~Drained() { segment_pool.give(segments_, segments_.size()); }
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;

 private:
  const Shortage shortage_;
  SegmentStack segments_;
};

TEST(Shortage, of_segments_fails_requests_and_no_free) {
  const OwnArena a(1, 1000, 1);
  std::vector<std::uintptr_t> pieces;
  {
    const Drained drained;
    errno = 0;
    while (const std::uintptr_t p = a.alloc(1)) pieces.push_back(p);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_LT(pieces.size(), SegmentStore::most);
    EXPECT_GT(vmem_size(a, VMEM_FREE), 800U);
    errno = 0;
    EXPECT_EQ(vmem_add(a, at(5000), 1, VM_NOSLEEP), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_STREQ(a.arena().check_invariants(), nullptr);
    a.free(pieces.back(), 1);
    pieces.back() = a.alloc(1);
    EXPECT_EQ(pieces.back() == 0, false) << "what was freed can be had again";
  }
  pieces.push_back(a.alloc(1));
  EXPECT_NE(pieces.back(), 0U);
  for (const std::uintptr_t p : pieces) a.free(p, 1);
}

TEST(Shortage, of_segments_gives_an_import_back) {
  CountingSource source;
  const OwnArena a(source.importer(1));
  {
    const Drained drained;
    EXPECT_EQ(a.alloc(1), 0U);
    EXPECT_EQ(source.takes, 1U);
    EXPECT_EQ(source.gives, 1U);
  }
  const std::uintptr_t p = a.alloc(1);
  EXPECT_NE(p, 0U);
  a.free(p, 1);
}

TEST(Shortage, of_tables_makes_chains_longer) {
  const OwnArena a(1, 100, 1);
  {
    SegmentStack segments;  // enough, before memory is short
    ASSERT_TRUE(segment_pool.take(segments, 200));
    segment_pool.give(segments, 200);
  }
  const Shortage shortage;
  refused = 0;
  for (std::uintptr_t i = 0; i < 100; ++i) ASSERT_NE(a.alloc(1), 0U);
  EXPECT_GT(refused, 0);
  EXPECT_STREQ(a.arena().check_invariants(), nullptr);
  for (std::uintptr_t i = 1; i <= 100; ++i) a.free(i, 1);
}

}  // namespace
}  // namespace terrace::vmem
