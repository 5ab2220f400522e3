// SPDX-License-Identifier: MIT OR Apache-2.0
// A runtime that is all bookkeeping: the source is a bump over an array, the filler remembers ranges. One thread.
#pragma once

#include "terrace/lab.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <sched.h>
#include <vector>

namespace terrace::lab {

struct Bytes {
  std::size_t start, end;  // offsets in the space
  std::size_t size() const { return end - start; }
  friend bool operator==(const Bytes&, const Bytes&) = default;
  friend bool operator<(const Bytes& a, const Bytes& b) { return a.start < b.start; }
};
using ListOfBytes = std::vector<Bytes>;

inline std::size_t sum_of(const ListOfBytes& list) {
  std::size_t sum = 0;
  for (const Bytes& b : list) sum += b.size();
  return sum;
}

/// Fixed sizes by level, 0 for none; everything else at its default.
inline terrace_lab_config config_of(std::array<std::size_t, TERRACE_LAB_LEVELS> sizes, int core_sync = TERRACE_LAB_CAS) {
  terrace_lab_config c{};
  c.abi = TERRACE_LAB_ABI;
  c.alignment = 16;
  for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) c.levels[l].size = sizes[static_cast<std::size_t>(l)];
  c.levels[TERRACE_LAB_CORE].sync = core_sync;
  return c;
}

class Fake {
 public:
  explicit Fake(terrace_lab_config config, std::size_t space = std::size_t{1} << 20) : limit(space), bytes_(space) {
    config.self = this;
    config.source = source;
    config.available = [](void* self) { return inside(self).limit - inside(self).used; };
    config.fill = [](void* self, void* start, void* end) {
      inside(self).filled.push_back({inside(self).offset(start), inside(self).offset(end)});
    };
    const std::size_t needed = terrace_lab_heap_bytes(&config);
    heap_memory_ = zeroed(needed);
    space_ = zeroed(space);
    heap = terrace_lab_init(heap_memory_.get(), &config);
    EXPECT_NE(heap, nullptr);
  }

  std::size_t offset(const void* p) const {
    const auto at = static_cast<std::size_t>(static_cast<const char*>(p) - static_cast<const char*>(space_.get()));
    EXPECT_LE(at, bytes_);
    return at;
  }
  terrace_lab_counters counters() const {
    terrace_lab_counters c;
    terrace_lab_read_counters(heap, &c);
    return c;
  }
  terrace_lab_counts counts(int level) const { return counters().level[level]; }
  /// What terrace_lab_walk() shows.
  ListOfBytes tails() const {
    struct Seen {
      const Fake& fake;
      ListOfBytes list;
    } seen{*this, {}};
    const auto visit = [](void* argument, int, void* start, void* end) {
      auto& s = *static_cast<Seen*>(argument);
      s.list.push_back({s.fake.offset(start), s.fake.offset(end)});
    };
    terrace_lab_walk(heap, visit, &seen);
    return seen.list;
  }
  /// A whole collection.
  void collect() {
    terrace_lab_retire_all(heap);
    used = 0;
    filled.clear();
    terrace_lab_collected(heap, 0);
  }

  terrace_lab_heap* heap;
  std::size_t limit;     // of the space; may be lowered
  std::size_t used = 0;  // handed out
  std::size_t gap = 0;   // left out between two pieces, so that they are no neighbours
  unsigned calls = 0;    // of the source, those with success
  ListOfBytes filled;

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  using Memory = std::unique_ptr<void, Free>;
  static Memory zeroed(std::size_t bytes) {
    const std::size_t rounded = (bytes + 4095) / 4096 * 4096;
    void* const p = std::aligned_alloc(4096, rounded);
    return Memory(std::memset(p, 0, rounded));
  }
  static Fake& inside(void* self) { return *static_cast<Fake*>(self); }
  static void* source(void* self, unsigned, std::size_t min, std::size_t desired, std::size_t* actual) {
    Fake& f = inside(self);
    const std::size_t room = f.limit - f.used;
    if (min > room) return nullptr;
    *actual = std::min(desired, room);
    void* const start = static_cast<char*>(f.space_.get()) + f.used;
    f.used += std::min(room, *actual + f.gap);
    ++f.calls;
    return start;
  }

  std::size_t bytes_;
  Memory heap_memory_, space_;
};

/// An attached thread, in the sense of the engine.
class Attached {
 public:
  explicit Attached(Fake& fake) : fake_(fake) { terrace_lab_attach(fake.heap, &lab); }
  ~Attached() {
    if (attached_) terrace_lab_detach(&lab);
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

  void detach() {
    terrace_lab_detach(&lab);
    attached_ = false;
  }
  static constexpr std::size_t none = ~std::size_t{0};
  /// The offset of a new object.
  std::size_t allocate(std::size_t bytes) { return seen(terrace_lab_allocate(&lab, bytes), bytes); }
  std::size_t allocate_at(int level, std::size_t bytes) { return seen(terrace_lab_allocate_at(&lab, level, bytes), bytes); }
  std::size_t allocate_core(std::size_t bytes) { return seen(terrace_lab_allocate_core(&lab, bytes), bytes); }
  /// `count` objects, none of them refused.
  void allocate_many(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) ASSERT_NE(allocate(bytes), none);
  }
  std::size_t tail() const { return static_cast<std::size_t>(lab.end - lab.top); }

  terrace_lab_thread lab;
  ListOfBytes objects;

 private:
  std::size_t seen(void* p, std::size_t bytes) {
    if (p == nullptr) return none;
    const std::size_t at = fake_.offset(p);
    objects.push_back({at, at + bytes});
    return at;
  }
  Fake& fake_;
  bool attached_ = true;
};

/// The cpus that this process may use; the test stays on the first, so that its core, processor and node are always the same.
class OnOneCpu {
 public:
  OnOneCpu() {
    sched_getaffinity(0, sizeof before_, &before_);
    for (int c = 0; c < CPU_SETSIZE; ++c) {
      if (CPU_ISSET(c, &before_)) cpus_.push_back(c);
    }
    go_to(0);
  }
  ~OnOneCpu() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;
  std::size_t count() const { return cpus_.size(); }
  void go_to(std::size_t i) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus_[i], &one);
    sched_setaffinity(0, sizeof one, &one);
  }

 private:
  cpu_set_t before_;
  std::vector<int> cpus_;
};

/// Every byte of [0, used) is in exactly one of the ranges.
inline void expect_covered(std::size_t used, ListOfBytes ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t at = 0;
  for (const Bytes& b : ranges) {
    ASSERT_EQ(b.start, at);
    ASSERT_GT(b.end, b.start);
    at = b.end;
  }
  ASSERT_EQ(at, used);
}

}  // namespace terrace::lab
