// SPDX-License-Identifier: MIT OR Apache-2.0
#include "census.h"

#include <bit>
#include <gtest/gtest.h>
#include <unordered_set>

namespace terrace::heap {
namespace {

using span::GranuleIndex;
using span::Record;
using span::State;

class Walk {
 public:
  Census run() {
    const auto granules = static_cast<GranuleIndex>(window_.extent() >> span::granule_shift);
    for (GranuleIndex i = 0; i < granules; ++i) count_span(i);
    heap.core().for_each([this](level::Slot& slot) { count_slot(slot); });
    heap.levels().for_each_shard([this](level::Shard& shard) { count_shard(shard); });
    return census_;
  }

 private:
  static std::size_t class_at(std::size_t home) { return index(class_of(home_at(home))); }

  void count_span(GranuleIndex i) {
    const Record& r = window_.record(i);
    if (r.state == State::dirty) census_.dirty_granules += r.granules;
    if (r.state == large_span && !heap.large().is_kept(r)) ++census_.large_blocks;
    if (r.state != slab_span) return;
    const SlabRecord& slab = r.owners_part<SlabRecord>();
    const std::uint8_t home = window_.owners_byte(i);
    std::uint32_t free = 0;
    for (std::uint32_t w = 0; w * 64 < slab.block_count; ++w)
      free += static_cast<std::uint32_t>(std::popcount(slab.free_map[w]));
    EXPECT_EQ(free, slab.free_blocks) << "bits of the slab at granule " << i;
    EXPECT_NE(home, 0) << "page map at granule " << i;
    census_.by_class[class_at(home)].out_of_slabs += slab.block_count - free;
  }

  void count_slot(level::Slot& slot) {
    for (std::size_t home = 1; home < home_class_count; ++home) {
      for (const Word w : {slot.words[home], slot.previous[home]}) {
        EXPECT_NE(w, stopped_word) << "a word of home class " << home << " is stopped";
        const auto m = heap.magazines().of_word(w);
        census_.by_class[class_at(home)].in_words += count_magazine(m, home);
      }
    }
  }

  void count_shard(level::Shard& shard) {
    for (std::size_t key = 0; key < level::block_keys; ++key) {
      const level::MagazineStack& stack = shard.stack(key);
      for (unsigned n = 0; n < stack.size(); ++n) census_.by_class[class_at(key)].in_depots += count_magazine(stack.at(n), key);
    }
  }

  std::uint64_t count_magazine(level::Magazine m, std::size_t home) {
    for (unsigned n = 0; n < m.count(); ++n) check_block(reinterpret_cast<const void*>(m.begin()[n]), home);
    return m.count();
  }

  void check_block(const void* block, std::size_t home) {
    EXPECT_TRUE(seen_.insert(block).second) << block << " is in two magazines";
    ASSERT_TRUE(window_.contains(block)) << block;
    EXPECT_EQ(window_.owners_byte(window_.index_of(block)), home) << block;
    ASSERT_TRUE(heap.slabs().is_block(block));
    EXPECT_FALSE(heap.slabs().is_free(block)) << block << " is in a magazine and free in its slab";
  }

  const span::Window& window_ = heap.spans().window();
  Census census_;
  std::unordered_set<const void*> seen_;
};

}  // namespace

Census take_census() { return Walk().run(); }

}  // namespace terrace::heap
