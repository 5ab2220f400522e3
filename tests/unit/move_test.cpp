// SPDX-License-Identifier: MIT OR Apache-2.0
// realloc that moves pages, on kernels that refuse: two calls of os/memory.h come here first (the linker's --wrap), and leave
// behind what such kernels leave behind.
#include "heap/heap.h"
#include "os/memory.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vector>

namespace terrace::os {

bool real_move_pages(void* from, std::size_t bytes, void* to, std::size_t room) noexcept
    asm("__real__ZN7terrace2os10move_pagesEPvmS1_m");
bool wrap_move_pages(void* from, std::size_t bytes, void* to, std::size_t room) noexcept
    asm("__wrap__ZN7terrace2os10move_pagesEPvmS1_m");
bool real_map_anew(void* address, std::size_t bytes) noexcept asm("__real__ZN7terrace2os8map_anewEPvm");
bool wrap_map_anew(void* address, std::size_t bytes) noexcept asm("__wrap__ZN7terrace2os8map_anewEPvm");

namespace {

enum class Move {
  works,
  refused,                  // at once: a sandbox, or Linux 6.17 and later where the source is several mappings
  refused_after_unmapping,  // Linux before 6.17: the target is unmapped, then the source is looked at
};
struct Kernel {
  Move move = Move::works;
  int maps_left = 1000;  // calls of map_anew that work; then the range is left unmapped, as over RLIMIT_AS
  unsigned moves = 0;
};
Kernel kernel;

}  // namespace

bool wrap_move_pages(void* from, std::size_t bytes, void* to, std::size_t room) noexcept {
  ++kernel.moves;
  if (kernel.move == Move::refused_after_unmapping) munmap(to, room);
  return kernel.move == Move::works && real_move_pages(from, bytes, to, room);
}

bool wrap_map_anew(void* address, std::size_t bytes) noexcept {
  if (kernel.maps_left-- > 0) return real_map_anew(address, bytes);
  munmap(address, bytes);
  return false;
}

}  // namespace terrace::os

namespace terrace::heap {
namespace {

using span::State;

constexpr std::size_t size = 3 * mib;

class MoveTest : public testing::Test {
 protected:
  void SetUp() override {
    os::kernel = {};
    ASSERT_TRUE(heap.ready());
    if (!heap.spans().window().movable()) GTEST_SKIP() << "no pages are moved here";
  }
  void TearDown() override {
    os::kernel = {};
    for (void* p : blocks_) heap.free(p);
    expect_whole();
  }

  // A block that can not grow where it is.
  unsigned char* enclosed(std::size_t bytes = size) {
    auto* const p = static_cast<unsigned char*>(heap.allocate(bytes));
    EXPECT_NE(p, nullptr);
    const span::Window& window = heap.spans().window();
    const span::GranuleIndex first = window.index_of(p);
    const span::GranuleIndex behind = first + window.record(first).granules;
    // A hole that is too short for the smallest large block is too short for the block to grow, too.
    constexpr std::size_t filler = SizeRule::largest + 1;
    constexpr std::uint32_t shortest = filler / span::granule_size + 2;
    const auto is_free = [&] {
      if (!window.contains(window.address(behind))) return true;
      const span::Record& r = window.record(behind);
      return (r.state == State::clean || r.state == State::dirty) && r.granules >= shortest;
    };
    while (is_free()) blocks_.push_back(heap.allocate(filler));
    fill(p, 0, bytes);
    return p;
  }
  static void fill(unsigned char* p, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) p[i] = static_cast<unsigned char>(i * 31 >> 8);
  }
  static void expect_filled(const unsigned char* p, std::size_t bytes) {
    std::size_t i = 0;
    while (i < bytes && p[i] == static_cast<unsigned char>(i * 31 >> 8)) ++i;
    EXPECT_EQ(i, bytes);
  }
  static unsigned char* reallocate(unsigned char* p, std::size_t bytes) {
    return static_cast<unsigned char*>(heap.reallocate(p, bytes));
  }
  // Moved or copied, with its contents, and all of it can be written.
  unsigned char* expect_grown(unsigned char* p, std::size_t from, std::size_t to) {
    unsigned char* const q = reallocate(p, to);
    EXPECT_NE(q, nullptr);
    if (q == nullptr) return p;
    expect_filled(q, from);
    fill(q, from, to);
    return q;
  }
  // Granules below the frontier are taken, clean, dirty or unmapped; blocks may be allocated all over them.
  static void expect_whole() {
    const span::Spans& spans = heap.spans();
    const span::Window& window = spans.window();
    const auto frontier = static_cast<span::GranuleIndex>(window.extent() >> span::granule_shift);
    std::uint64_t taken = 0, dirty = 0, unmapped = 0;
    for (span::GranuleIndex i = 0; i < frontier;) {
      const span::Record& r = window.record(i);
      if (r.state == State::unmapped) {
        ++unmapped;
        ++i;
        continue;
      }
      ASSERT_NE(r.state, State::interior) << i;
      ASSERT_NE(r.granules, 0U) << i;
      if (r.state == State::dirty) dirty += r.granules;
      if (r.state >= State::taken) taken += r.granules;
      i += r.granules;
      ASSERT_LE(i, frontier);
    }
    EXPECT_EQ(taken * span::granule_size, spans.taken_bytes());
    EXPECT_EQ(dirty * span::granule_size, spans.dirty_bytes());
    EXPECT_EQ(window.extent() - unmapped * span::granule_size, window.committed());
  }

  std::vector<void*> blocks_;
};

TEST_F(MoveTest, pages_move_and_the_block_grows_and_shrinks_where_it_is) {
  unsigned char* p = enclosed();
  const std::uint64_t moved = heap.large().counters().moved.read();
  p = expect_grown(p, size, 2 * size);
  EXPECT_EQ(heap.large().counters().moved.read(), moved + 1);
  EXPECT_EQ(heap.large().counters().apart.read(), 1U);
  p = expect_grown(p, 2 * size, 2 * size + 100000);
  p = reallocate(p, size + 5);
  expect_filled(p, size + 5);
  expect_whole();
  p = expect_grown(p, size + 5, 2 * size);
  p = expect_grown(p, 2 * size, 4 * size);
  heap.free(p);
  EXPECT_EQ(heap.large().counters().apart.read(), 0U);
}

TEST_F(MoveTest, a_refused_move_is_a_copy_whatever_became_of_the_target) {
  for (const os::Move how : {os::Move::refused, os::Move::refused_after_unmapping}) {
    os::kernel.move = how;
    os::kernel.moves = 0;
    unsigned char* const p = expect_grown(enclosed(), size, 2 * size);
    EXPECT_EQ(os::kernel.moves, 1U);
    EXPECT_EQ(heap.large().counters().apart.read(), 0U);
    heap.free(p);
  }
}

TEST_F(MoveTest, a_target_that_can_not_be_mapped_again_becomes_an_obstacle) {
  unsigned char* const p = enclosed();
  const std::uint64_t before = heap.spans().window().committed();
  os::kernel = {.move = os::Move::refused_after_unmapping, .maps_left = 0};
  unsigned char* const q = reallocate(p, 2 * size);
  os::kernel = {};
  ASSERT_NE(q, nullptr);  // there was memory elsewhere
  expect_filled(q, size);
  fill(q, size, 2 * size);
  EXPECT_NE(heap.spans().window().committed(), before);
  expect_whole();
  for (int i = 0; i < 30; ++i) blocks_.push_back(enclosed(1 * mib));  // the obstacle is not among them
  heap.free(q);
}

TEST_F(MoveTest, a_source_that_can_not_be_mapped_again_becomes_an_obstacle) {
  unsigned char* const p = enclosed();
  os::kernel.maps_left = 0;
  unsigned char* const q = reallocate(p, 2 * size);
  os::kernel = {};
  ASSERT_NE(q, nullptr);
  expect_filled(q, size);
  fill(q, size, 2 * size);
  EXPECT_EQ(heap.spans().window().record(heap.spans().window().index_of(p)).state, State::unmapped);
  for (int i = 0; i < 30; ++i) blocks_.push_back(enclosed(1 * mib));
  os::kernel.maps_left = 0;
  heap.free(q);  // nor can this be mapped again
  EXPECT_EQ(heap.spans().window().record(heap.spans().window().index_of(q)).state, State::unmapped);
  EXPECT_DEATH(heap.free(q), "invalid pointer");
}

TEST_F(MoveTest, a_tail_that_can_not_be_mapped_again_becomes_an_obstacle) {
  unsigned char* p = expect_grown(enclosed(), size, 2 * size);
  os::kernel.maps_left = 0;
  p = reallocate(p, size);
  os::kernel = {};
  expect_filled(p, size);
  for (int i = 0; i < 30; ++i) blocks_.push_back(enclosed(1 * mib));
  p = expect_grown(p, size, 3 * size);
  heap.free(p);
}

// This kernel, whichever it is: all or nothing, also where it could move several mappings one by one.
TEST_F(MoveTest, a_source_of_several_mappings_is_not_moved_in_part) {
  constexpr std::size_t part = 64 * kib;
  auto* const from = static_cast<unsigned char*>(os::map(4 * part));
  auto* const to = static_cast<unsigned char*>(os::map(8 * part));
  fill(from, 0, 4 * part);
  ASSERT_EQ(madvise(from + part, part, MADV_DONTDUMP), 0);
  EXPECT_FALSE(os::real_move_pages(from, 4 * part, to, 5 * part));
  expect_filled(from, 4 * part);
  EXPECT_TRUE(os::real_map_anew(to, 8 * part));
  ASSERT_EQ(madvise(from + part, part, MADV_DODUMP), 0);
  EXPECT_TRUE(os::real_move_pages(from, 4 * part, to, 5 * part));
  expect_filled(to, 4 * part);
  fill(to, 4 * part, 8 * part);
}

TEST_F(MoveTest, more_blocks_than_the_mappings_allow_are_copied) {
  constexpr std::size_t most = Large::most_apart;
  std::vector<void*> grown;
  for (std::size_t i = 0; i < most + 20; ++i) {
    auto* p = static_cast<unsigned char*>(heap.allocate(mib));
    void* const behind = heap.allocate(128 * kib);
    p[0] = 1;
    p[mib - 1] = 2;
    p = reallocate(p, mib + 100 * kib);
    ASSERT_TRUE(p != nullptr && p[0] == 1 && p[mib - 1] == 2);
    grown.push_back(p);
    blocks_.push_back(behind);
  }
  EXPECT_LE(heap.large().counters().apart.read(), most);
  EXPECT_GE(heap.large().counters().apart.read(), most / 2);
  for (void* p : grown) heap.free(p);
  EXPECT_EQ(heap.large().counters().apart.read(), 0U);
}

}  // namespace
}  // namespace terrace::heap
