// SPDX-License-Identifier: MIT OR Apache-2.0
// The window on machines and among neighbours that this one does not have: some calls of os/memory.h come here first (the
// linker's --wrap), and behave as they would there.
#include "span/spans.h"

#include <gtest/gtest.h>
#include <memory>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace terrace::os {

Mapped real_look_at(void* address, std::size_t bytes) noexcept asm("__real__ZN7terrace2os7look_atEPvm");
Mapped real_map_at(void* address, std::size_t bytes) noexcept asm("__real__ZN7terrace2os6map_atEPvm");
void* real_reserve(std::size_t bytes, void* hint) noexcept asm("__real__ZN7terrace2os7reserveEmPv");
Mapped wrap_look_at(void* address, std::size_t bytes) noexcept asm("__wrap__ZN7terrace2os7look_atEPvm");
Mapped wrap_map_at(void* address, std::size_t bytes) noexcept asm("__wrap__ZN7terrace2os6map_atEPvm");
void* wrap_reserve(std::size_t bytes, void* hint) noexcept asm("__wrap__ZN7terrace2os7reserveEmPv");

namespace {

struct Machine {
  std::uintptr_t end = ~std::uintptr_t{0};            // of the addresses that processes have
  std::size_t largest_reservation = ~std::size_t{0};  // as under RLIMIT_AS
  std::size_t reserved = 0;                           // by the call that succeeded
  unsigned looks = 0;
  bool unmaps = true;  // what was only looked at
  bool full = false;   // no memory is mapped
  int rival_at = -1;   // before this one of the calls to map, somebody else maps a page there
  void* rival = nullptr;
};
Machine machine;

void map_before(void* address) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  machine.rival = mmap(address, page_size(), PROT_READ, flags, -1, 0);
}

}  // namespace

Mapped wrap_look_at(void* address, std::size_t bytes) noexcept {
  ++machine.looks;
  const Mapped result = address_of(address) + bytes > machine.end ? Mapped::refused : real_look_at(address, bytes);
  if (result != Mapped::yes || machine.unmaps) return result;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  return ::mmap(address, bytes, PROT_NONE, flags, -1, 0) == address ? Mapped::kept : Mapped::refused;
}

Mapped wrap_map_at(void* address, std::size_t bytes) noexcept {
  if (machine.rival_at >= 0 && machine.rival_at-- == 0) map_before(address);
  return machine.full || address_of(address) + bytes > machine.end ? Mapped::refused : real_map_at(address, bytes);
}

void* wrap_reserve(std::size_t bytes, void* hint) noexcept {
  if (bytes > machine.largest_reservation) return nullptr;
  machine.reserved = bytes;
  return real_reserve(bytes, hint);
}

}  // namespace terrace::os

namespace terrace::span {
namespace {

constexpr std::uint32_t granules_per_mib = mib / granule_size;

class WindowTest : public testing::Test {
 protected:
  void SetUp() override { os::machine = {}; }
  void TearDown() override {
    forget();
    os::machine = {};
  }
  // A window is for the life of a process, and these are all in one.
  static constexpr std::size_t metadata = Window::map_size + max_granules * sizeof(Record);
  void forget() {
    for (const Range& r : obstacles_) munmap(r.start, r.bytes);
    obstacles_.clear();
    if (window().movable() && window().base() != nullptr) {
      // Not by libc's function: a sanitizer would clear its shadow of terabytes.
      syscall(SYS_munmap, window().base() - metadata, metadata + max_granules * granule_size);
    }
    spans_ = std::make_unique<Spans>();
  }

  // Somebody else's reservation of addresses behind the frontier. False: this machine has no such addresses.
  bool put_obstacle(std::size_t gap, std::size_t bytes) {
    void* const at = pointer_to(address_of(window().base()) + window().extent() + gap);
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void* const p = mmap(at, bytes, PROT_NONE, flags, -1, 0);
    if (p == MAP_FAILED) return false;
    obstacles_.push_back({p, bytes});
    return p == at;
  }
  bool in_obstacle(const void* p, std::size_t bytes) const {
    for (const Range& r : obstacles_) {
      if (address_of(p) < address_of(r.start) + r.bytes && address_of(r.start) < address_of(p) + bytes) return true;
    }
    return false;
  }
  // Takes and touches spans of a MiB, none of which may lie in an obstacle.
  void fill(unsigned mebibytes) {
    for (unsigned i = 0; i < mebibytes; ++i) {
      const auto s = spans_->take(granules_per_mib, State::taken);
      ASSERT_NE(s.first, no_granule) << "after " << i << " MiB";
      ASSERT_FALSE(in_obstacle(window().address(s.first), mib));
      for (std::size_t at = 0; at < mib; at += granule_size) window().address(s.first)[at] = std::byte{1};
    }
  }
  const Window& window() const { return spans_->window(); }

  struct Range {
    void* start;
    std::size_t bytes;
  };
  std::vector<Range> obstacles_;
  std::unique_ptr<Spans> spans_ = std::make_unique<Spans>();
};

#if !defined(TERRACE_SANITIZED)  // sanitizers have no place of our choice

TEST_F(WindowTest, goes_on_behind_an_obstacle_of_any_length) {
  constexpr std::size_t gib = 1024 * mib;
  for (const std::size_t bytes : {granule_size, 3 * mib, gib + granule_size, 100 * gib, 1024 * gib, 2049 * gib}) {
    ASSERT_TRUE(spans_->open());
    fill(1);
    ASSERT_TRUE(put_obstacle(0, bytes));
    fill(200);
    // Not more than the obstacle was left out, and what the search for a place of 64 MiB skipped.
    EXPECT_LE(window().extent(), bytes + 300 * mib);
    EXPECT_LE(window().committed(), 300 * mib);
    EXPECT_LE(os::machine.looks, 100U);
    forget();
    os::machine.looks = 0;
  }
}

// A sandbox refuses munmap: what a look has mapped is in the way of the next one, so it is used.
TEST_F(WindowTest, goes_on_behind_an_obstacle_where_nothing_is_unmapped) {
  os::machine.unmaps = false;
  ASSERT_TRUE(spans_->open());
  fill(1);
  for (const std::size_t bytes : {3 * mib, 100 * mib}) {
    ASSERT_TRUE(put_obstacle(0, bytes));
    fill(100);
  }
  EXPECT_LE(window().extent(), 800 * mib);
  EXPECT_EQ(spans_->check_invariants(), nullptr);
}

TEST_F(WindowTest, an_obstacle_beyond_what_is_needed_leaves_the_space_before_it) {
  ASSERT_TRUE(spans_->open());
  fill(1);
  ASSERT_TRUE(put_obstacle(2 * mib, 1024 * mib));
  const std::size_t before = window().extent();
  fill(5);  // three are there, two are mapped before the obstacle
  EXPECT_EQ(window().extent(), before + 2 * mib);
  fill(5);
}

TEST_F(WindowTest, records_of_an_obstacle_can_be_read) {
  ASSERT_TRUE(spans_->open());
  fill(1);
  const GranuleIndex start = static_cast<GranuleIndex>(window().extent() >> granule_shift);
  ASSERT_TRUE(put_obstacle(0, 2048 * std::size_t{1024} * mib));
  fill(10);
  const GranuleIndex end = static_cast<GranuleIndex>(window().extent() >> granule_shift);
  for (GranuleIndex i = start; i < start + (end - start) / 2; i += 65521) {
    ASSERT_EQ(window().record(i).state, State::unmapped);
    ASSERT_EQ(window().owners_byte(i), 0);
  }
}

TEST_F(WindowTest, several_obstacles_one_behind_the_other) {
  ASSERT_TRUE(spans_->open());
  fill(1);
  for (unsigned i = 1; i < 40; ++i) ASSERT_TRUE(put_obstacle(i * 8 * mib, i % 3 == 0 ? 7 * mib : granule_size));
  fill(500);
}

// Neither a place nor a look beyond the addresses that there are.
TEST_F(WindowTest, machines_with_fewer_addresses_have_a_place_too) {
  for (const unsigned bits : {39U, 42U, 47U}) {
    os::machine.end = std::uintptr_t{1} << bits;
    ASSERT_TRUE(spans_->open());
    EXPECT_TRUE(window().movable());
    EXPECT_LT(address_of(window().base()), os::machine.end / 2);
    fill(200);
    EXPECT_EQ(spans_->take(max_granules - 1, State::taken).first, no_granule);
    fill(10);
    ASSERT_TRUE(put_obstacle(0, 5000 * mib));
    fill(100);
    forget();
  }
}

// Whoever looks at a place before mapping there may find it taken when it maps: the granules, the page map, the records.
TEST_F(WindowTest, a_place_that_somebody_else_takes_a_moment_earlier_is_left_for_another) {
  for (int rival_at = 0; rival_at < 3; ++rival_at) {
    os::machine.rival_at = rival_at;
    ASSERT_TRUE(spans_->open());
    fill(10);
    ASSERT_NE(os::machine.rival, nullptr);
    EXPECT_EQ(munmap(os::machine.rival, os::page_size()), 0) << "it was replaced";
    EXPECT_GT(window().extent(), 0U);
    const auto near = [&](const Window& w) {  // of what the window will map
      return address_of(os::machine.rival) + metadata >= address_of(w.base()) &&
             address_of(os::machine.rival) < address_of(w.base()) + window().extent();
    };
    EXPECT_FALSE(near(window()));
    forget();
  }
}

TEST_F(WindowTest, windows_of_many_heaps_lie_apart) {
  std::vector<std::unique_ptr<Spans>> heaps(16);
  for (auto& heap : heaps) {
    heap = std::make_unique<Spans>();
    ASSERT_TRUE(heap->open());
  }
  for (const auto& one : heaps) {
    for (const auto& other : heaps) {
      const std::uintptr_t a = address_of(one->window().base()), b = address_of(other->window().base());
      if (a < b) {
        EXPECT_GT(b - a, metadata + 16 * 1024 * mib);
      }
    }
  }
  for (auto& heap : heaps) {
    std::swap(spans_, heap);
    fill(100);
    std::swap(spans_, heap);
  }
  for (auto& heap : heaps) {
    std::swap(spans_, heap);
    forget();
  }
}

TEST_F(WindowTest, without_memory_it_opens_later) {
  os::machine.full = true;
  EXPECT_FALSE(spans_->open());
  EXPECT_EQ(os::machine.reserved, 0U);
  os::machine.full = false;
  ASSERT_TRUE(spans_->open());
  const std::byte* const base = window().base();
  ASSERT_TRUE(spans_->open());  // the heap does, when what comes after fails
  EXPECT_EQ(window().base(), base);
  fill(10);
}

#endif

TEST_F(WindowTest, without_a_place_the_kernel_chooses_and_metadata_is_in_proportion) {
  os::machine.end = 0;
  for (const std::size_t available : {136 * mib, 256 * mib, 4000 * mib, 8000 * mib, 600 * 1024 * mib}) {
    os::machine.largest_reservation = available;
    ASSERT_TRUE(spans_->open()) << available;
    EXPECT_FALSE(window().movable());
    EXPECT_GE(os::machine.reserved, available / 2) << available;
    fill(16);
    if (available > 1024 * mib) fill(200);
    if (available <= 256 * mib) {  // all that was reserved can be had, and its end is said
      while (spans_->take(granules_per_mib, State::taken).first != no_granule) {
      }
      EXPECT_GE(window().extent(), available / 4) << available;
    }
    forget();
  }
}

TEST_F(WindowTest, without_a_place_and_without_addresses_it_does_not_open) {
  os::machine.end = 0;
  os::machine.largest_reservation = 64 * mib;
  EXPECT_FALSE(spans_->open());
}

}  // namespace
}  // namespace terrace::span
