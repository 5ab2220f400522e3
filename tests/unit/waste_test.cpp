// SPDX-License-Identifier: MIT OR Apache-2.0
// Pages of slabs that hold free blocks: what is counted, what is given back, and what a process that is forked meanwhile finds.
// The kernel's part comes here first (the linker's --wrap).
#include "heap/slabs/slabs.h"
#include "os/memory.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace terrace::os {

bool real_purge(void* address, std::size_t bytes) noexcept asm("__real__ZN7terrace2os5purgeEPvm");
bool wrap_purge(void* address, std::size_t bytes) noexcept asm("__wrap__ZN7terrace2os5purgeEPvm");

namespace {
bool takes_memory = true;
std::function<void()>* in_purge = nullptr;
}  // namespace

bool wrap_purge(void* address, std::size_t bytes) noexcept {
  if (in_purge != nullptr) (*in_purge)();
  return takes_memory && real_purge(address, bytes);
}

}  // namespace terrace::os

namespace terrace::heap {
namespace {

using Blocks = std::vector<void*>;

class WasteTest : public testing::Test {
 protected:
  void SetUp() override {
    os::takes_memory = true;
    os::in_purge = nullptr;
    ASSERT_TRUE(spans_->open());
    slabs_->open(*spans_, shapes_for(Placement::punctuated));
  }
  void TearDown() override {
    os::in_purge = nullptr;
    EXPECT_STREQ(slabs_->check_invariants(), nullptr);
  }
  static HomeClass home_of_size(std::size_t size) { return home_class(class_for(size), 0); }
  static std::size_t per_slab(std::size_t size) { return shapes_for(Placement::punctuated)[index(class_for(size))].blocks; }

  // Each block is written to: it has its pages.
  Blocks cut(std::size_t size, std::size_t n) {
    Blocks blocks;
    while (blocks.size() < n) {
      std::uint64_t some[200];
      unsigned got = slabs_->cut(home_of_size(size), static_cast<unsigned>(min_of<std::size_t>(n - blocks.size(), 200)), some);
      if (got == 0) ADD_FAILURE() << "no memory";
      while (got != 0) blocks.push_back(reinterpret_cast<void*>(some[--got]));
    }
    for (void* p : blocks) std::memset(static_cast<char*>(p) + 16, 0x5a, size - 16);
    return blocks;
  }
  void put_back(const Blocks& blocks) {
    const auto* const all = reinterpret_cast<const std::uint64_t*>(blocks.data());
    for (std::size_t done = 0; done < blocks.size(); done += 100)
      slabs_->put_back(all + done, static_cast<unsigned>(min_of<std::size_t>(100, blocks.size() - done)));
  }
  bool is_whole() { return slabs_->check_invariants() == nullptr; }
  // A slab of 1,024 byte blocks of which all but the first and the last are free, and pages of all.
  Blocks hollow_slab() {
    Blocks all = cut(kib, per_slab(kib)), middle(all.begin() + 1, all.end() - 1);
    put_back(middle);
    return {all.front(), all.back()};
  }
  std::uint64_t purged() { return slabs_->counters(home_of_size(kib)).purged_bytes.read(); }

  // Never destroyed: a window is for the life of a process.
  static std::vector<void*>& kept() {
    static auto* const all = new std::vector<void*>;
    return *all;
  }
  template <class T>
  static T* keep(T* made) {
    kept().push_back(made);
    return made;
  }
  span::Spans* spans_ = keep(new span::Spans);
  Slabs* slabs_ = keep(new Slabs);
};

bool is_resident(void* page) {
  unsigned char state = 0;
  return mincore(page, os::page_size(), &state) == 0 && (state & 1) != 0;
}

TEST_F(WasteTest, what_is_free_is_counted_and_given_back_and_what_is_in_use_stays) {
  const Blocks kept = hollow_slab();
  auto* const inside = reinterpret_cast<void*>(round_up(address_of(kept[0]) + kib, os::page_size()));
  ASSERT_TRUE(is_resident(inside));
  EXPECT_GE(slabs_->waste(), (per_slab(kib) - 2) * kib);
  slabs_->purge_down_to(0);
  EXPECT_EQ(slabs_->waste(), 0U);
  EXPECT_GE(purged(), (per_slab(kib) - 2) * kib - 4 * os::page_size());
  EXPECT_FALSE(is_resident(inside));
  for (void* p : kept) EXPECT_EQ(static_cast<char*>(p)[500], 0x5a);
}

TEST_F(WasteTest, what_is_cut_is_in_use_until_it_is_back) {
  const Blocks blocks = cut(kib, 10);
  EXPECT_EQ(slabs_->in_use_bytes(), 10 * kib);
  EXPECT_EQ(spans_->in_use_bytes(), 10 * kib);
  EXPECT_EQ(slabs_->returned(), 0U);
  put_back(blocks);
  EXPECT_EQ(slabs_->in_use_bytes(), 0U);
  EXPECT_EQ(spans_->in_use_bytes(), 0U);
  EXPECT_EQ(slabs_->returned(), 10U);
}

TEST_F(WasteTest, holes_are_filled_when_blocks_are_cut) {
  hollow_slab();
  slabs_->purge_down_to(0);
  const Blocks again = cut(kib, per_slab(kib) - 2);
  EXPECT_EQ(std::set<void*>(again.begin(), again.end()).size(), again.size());
  EXPECT_EQ(slabs_->counters(home_of_size(kib)).slabs_made.read(), 1U);
  put_back(again);
  EXPECT_GE(slabs_->waste(), (per_slab(kib) - 2) * kib);
}

TEST_F(WasteTest, a_free_slab_of_blocks_of_a_granule_or_more_is_there_for_other_classes_and_of_others_one_stays) {
  put_back(cut(kib, per_slab(kib)));
  EXPECT_EQ(slabs_->counters(home_of_size(kib)).slabs_released.read(), 0U);
  for (const std::size_t size : {span::granule_size, SizeRule::largest}) {
    put_back(cut(size, 3 * per_slab(size)));
    EXPECT_EQ(slabs_->counters(home_of_size(size)).slabs_released.read(), 3U) << size;
  }
}

TEST_F(WasteTest, what_was_given_back_of_blocks_with_pages_of_their_own_and_they_needed_again_is_kept) {
  constexpr std::size_t size = 32 * kib, bytes = 96 * mib;  // more than stays because it was in use lately
  const auto kept_after_a_turn = [&] {
    put_back(cut(size, bytes / size));
    return slabs_->waste() + spans_->dirty_bytes();
  };
  EXPECT_LT(kept_after_a_turn(), bytes * 7 / 8);
  for (int turn = 0; turn < 4; ++turn) kept_after_a_turn();
  EXPECT_GT(kept_after_a_turn(), bytes * 15 / 16);
}

TEST_F(WasteTest, what_shares_pages_with_live_blocks_is_no_waste_until_a_quarter_of_those_has_gone) {
  const Blocks all = cut(kib, per_slab(kib));
  Blocks gone, kept;
  const std::size_t in_a_page = os::page_size() / kib;
  for (std::size_t i = 0; i < all.size(); ++i) (i % in_a_page == 0 ? kept : gone).push_back(all[i]);
  if (gone.empty()) GTEST_SKIP() << "pages of a kilobyte";
  put_back(gone);
  slabs_->purge_down_to(0);
  EXPECT_EQ(slabs_->waste(), 0U) << "stuck";
  const std::uint64_t before = purged();
  const std::size_t quarter = kept.size() / 4 + 1;
  put_back({kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(quarter) - 2});
  const std::uint64_t few = slabs_->waste();
  put_back({kept.begin() + static_cast<std::ptrdiff_t>(quarter) - 2, kept.begin() + static_cast<std::ptrdiff_t>(quarter)});
  EXPECT_GT(slabs_->waste(), few);
  slabs_->purge_down_to(0);
  EXPECT_GT(purged(), before);
  EXPECT_EQ(slabs_->waste(), 0U);
}

TEST_F(WasteTest, a_tick_has_slabs_looked_at_of_which_any_block_has_gone) {
  const Blocks all = cut(kib, per_slab(kib));
  Blocks gone, kept;
  for (std::size_t i = 0; i < all.size(); ++i) (i % 4 == 0 ? kept : gone).push_back(all[i]);
  put_back(gone);
  slabs_->purge_down_to(0);
  const std::uint64_t before = slabs_->waste();
  put_back({kept.back()});
  slabs_->tick();
  EXPECT_GT(slabs_->waste(), before);
}

TEST_F(WasteTest, purging_ends_where_the_system_takes_nothing) {
  hollow_slab();
  os::takes_memory = false;
  slabs_->purge_down_to(0);
  EXPECT_EQ(purged(), 0U);
  EXPECT_STREQ(slabs_->check_invariants(), nullptr);
  os::takes_memory = true;
  slabs_->trim();
  EXPECT_GT(purged(), 0U);
}

TEST_F(WasteTest, any_history_keeps_the_invariants) {
  std::mt19937 random(7);
  constexpr std::size_t sizes[] = {16, 48, 80, 1024, 1040, 3000, 8192, 40000, 131072};
  std::vector<Blocks> live(std::size(sizes));
  for (int step = 0; step < 1500; ++step) {
    const std::size_t k = random() % std::size(sizes);
    Blocks& mine = live[k];
    switch (random() % 8) {
      case 0: slabs_->purge_down_to(random() % 3 * 100 * kib); break;
      case 1: slabs_->tick(); break;
      case 2:
        if (random() % 8 == 0) slabs_->trim();
        break;
      case 3: os::takes_memory = random() % 4 != 0; break;
      case 4:
      case 5: {
        const Blocks more = cut(sizes[k], 1 + random() % min_of<std::size_t>(2 * mib / sizes[k], 300));
        mine.insert(mine.end(), more.begin(), more.end());
        break;
      }
      default: {
        std::shuffle(mine.begin(), mine.end(), random);
        const std::size_t left = mine.size() - random() % (mine.size() + 1);
        put_back({mine.begin() + static_cast<std::ptrdiff_t>(left), mine.end()});
        mine.resize(left);
      }
    }
    if (step % 20 == 0) {
      ASSERT_STREQ(slabs_->check_invariants(), nullptr) << "step " << step;
    }
  }
}

// ---- fork

// What the child finds: all blocks but two are free, and may be cut.
int in_child(Slabs& slabs, const Blocks& taken, HomeClass h) {
  slabs.reset_after_fork();
  if (slabs.check_invariants() != nullptr) return 1;
  unsigned free = 0;
  for (void* p : taken) free += slabs.is_free(p) ? 1 : 0;
  if (free != taken.size()) return 2;
  for (std::size_t n = 0; n < taken.size();) {
    std::uint64_t some[200];
    const unsigned got = slabs.cut(h, static_cast<unsigned>(min_of<std::size_t>(taken.size() - n, 200)), some);
    if (got == 0) return 3;
    n += got;
  }
  return slabs.counters(h).slabs_made.read() == 1 && slabs.check_invariants() == nullptr ? 0 : 4;
}

TEST_F(WasteTest, a_forked_child_has_the_blocks_that_another_thread_was_giving_back) {
  const Blocks all = cut(kib, per_slab(kib)), middle(all.begin() + 1, all.end() - 1);
  put_back(middle);
  int status = -1;
  std::function<void()> fork_elsewhere = [&] {
    std::thread([&] {
      slabs_->lock_all();
      const pid_t child = fork();
      if (child == 0) _exit(in_child(*slabs_, middle, home_of_size(kib)));
      slabs_->unlock_all();
      waitpid(child, &status, 0);
    }).join();
  };
  os::in_purge = &fork_elsewhere;
  slabs_->purge_down_to(0);
  os::in_purge = nullptr;
  EXPECT_EQ(status, 0);
  EXPECT_EQ(slabs_->waste(), 0U);
  EXPECT_GT(purged(), 0U);
}

// A signal handler has interrupted the thread that gives them back, and forks: the child's thread goes on where it was.
TEST_F(WasteTest, a_thread_that_forks_itself_meanwhile_puts_its_blocks_back_itself) {
  const Blocks all = cut(kib, per_slab(kib)), middle(all.begin() + 1, all.end() - 1);
  put_back(middle);
  pid_t child = -1;
  std::function<void()> fork_here = [&] {
    if (child != -1) return;
    slabs_->lock_all();
    child = fork();
    if (child == 0) {
      slabs_->reset_after_fork();
    } else {
      slabs_->unlock_all();
    }
  };
  os::in_purge = &fork_here;
  slabs_->purge_down_to(0);
  os::in_purge = nullptr;
  if (child == 0) {
    unsigned free = 0;
    for (void* p : middle) free += slabs_->is_free(p) ? 1 : 0;
    _exit(is_whole() && free == middle.size() && slabs_->waste() == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// More threads than can be written down for a child: the last of them keeps the lock, and loses nothing either.
TEST_F(WasteTest, whoever_can_not_be_written_down_keeps_the_lock) {
  const Blocks all = cut(kib, 4 * per_slab(kib));
  for (std::size_t i = 0; i < all.size(); i += per_slab(kib)) {
    put_back(
        {all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.begin() + static_cast<std::ptrdiff_t>(i + per_slab(kib)) - 1});
  }
  std::vector<bool> locked;
  std::function<void()> another = [&] {
    locked.push_back(os::Mutex::holds_any());
    if (!locked.back()) slabs_->purge_down_to(0);  // as another thread would, with the next slab
  };
  os::in_purge = &another;
  slabs_->purge_down_to(0);
  os::in_purge = nullptr;
  ASSERT_GE(locked.size(), 3U);
  EXPECT_EQ(std::vector<bool>(locked.begin(), locked.begin() + 3), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(slabs_->waste(), 0U);
}

}  // namespace
}  // namespace terrace::heap
