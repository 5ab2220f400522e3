// SPDX-License-Identifier: MIT OR Apache-2.0
// The heap profiler's one object: whether allocations are sampled, and the samples. Who decides which allocation it is, and
// gives it memory that can be told from others', is heap/sampling.h.
//
// `terrace profile --start` writes `word_` from outside.
#pragma once

#include "base/attributes.h"
#include "base/described.h"
#include "level/slot.h"
#include "profile/table.h"

namespace terrace::profile {

class Profiler {
 public:
  /// Mean bytes between two samples; 0: off.
  std::uint64_t period() const noexcept { return word() & most_period; }
  bool on() const noexcept { return period() != 0; }
  /// The period, and a number that tells one start from the next: slots compare it with what they were armed by.
  std::uint64_t word() const noexcept { return word_.load(std::memory_order_relaxed); }  // relaxed: nothing else depends on it
  /// 0: off.
  void set_period(std::uint64_t bytes) noexcept;
  void set_copies(bool copies) noexcept { mode_.store(copies ? copies_bit : 0, std::memory_order_relaxed); }
  static constexpr std::uint64_t most_period = (std::uint64_t{1} << 56) - 1;

  /// Room for a sample; 0: there is none, and the sample is counted as lost.
  std::uint32_t reserve() noexcept;
  void cancel(std::uint32_t n) noexcept { table_.give(n); }
  struct Block {
    const void* address;
    std::uint64_t size, weighed, period;
    std::uint16_t object_class = 0;
  };
  /// With the stack of the caller.
  __attribute__((noinline)) void record(std::uint32_t n, const Block& block) noexcept;
  void drop(std::uint32_t n) noexcept;
  /// The block was resized in place.
  void resize(std::uint32_t n, std::uint64_t size) noexcept;

  /// Called with 0 after each sample, and with the size of an allocation that has failed: within malloc, whatever it has
  /// interrupted.
  using Watcher = void (*)(std::uint64_t failed) noexcept;
  void set_watcher(Watcher watcher) noexcept { watcher_.store(watcher, std::memory_order_release); }  // [P4]
  void tell(std::uint64_t failed) const noexcept {
    // [P4] acquire, pairs with the release above: what the watcher looks at was written.
    if (const Watcher watcher = watcher_.load(std::memory_order_acquire); watcher != nullptr) watcher(failed);
  }

  /// Pops of a home class that its counters run through before they reach 0: see level::Slot::popped.
  std::atomic<std::uint64_t>& armed(std::size_t home) noexcept { return armed_[home]; }

  Table& table() noexcept { return table_; }
  const Counters& counters() const noexcept { return counters_; }

 private:
  friend struct introspect::Layout;
  static constexpr std::uint64_t copies_bit = 1;

  std::atomic<std::uint64_t> word_{0}, mode_{0};
  std::atomic<Watcher> watcher_{nullptr};
  Counters counters_;
  Table table_;
  std::atomic<std::uint64_t> armed_[level::slot_words]{};
};

extern Profiler profiler __attribute__((visibility("hidden")));

/// Where the calling thread entered the allocator, for as long as this lives: its frame pointers are followed from there, since
/// the library's own functions have none.
class Entered {
 public:
  explicit TERRACE_INLINE Entered(const void* frame) noexcept {
    if (profiler.on() && frame_ == nullptr) [[unlikely]] {
      frame_ = frame;
      is_first_ = true;
    }
  }
  TERRACE_INLINE ~Entered() {
    if (is_first_) [[unlikely]]
      frame_ = nullptr;
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;
  static const void* frame() noexcept { return frame_; }

 private:
  static inline constinit thread_local const void* frame_ = nullptr;
  bool is_first_ = false;
};

}  // namespace terrace::profile
