// SPDX-License-Identifier: MIT OR Apache-2.0
// Sampled blocks: each at the end or at the start of a page of its own, between pages that nobody may touch, as in LLVM's
// GWP-ASan and, before it, B. Perens' Electric Fence. Who runs over the block faults at that instruction; who uses it after it
// was freed, too, until its page is needed again: the page freed first is used first. Of each block it is known where it was
// allocated and freed.
#pragma once

#include "base/types.h"
#include "os/fault.h"
#include "os/mutex.h"

#include <atomic>

namespace terrace::check {

/// Who did something to a block, and from where.
struct Trace {
  static constexpr unsigned longest = 16;
  int thread = 0;  // 0: nobody did
  unsigned count = 0;
  const void* frames[longest] = {};
};

class GuardedPool {
 public:
  /// One allocation in `interval`. False: no address space.
  bool open(std::uint64_t interval) noexcept;

  bool contains(const void* p) const noexcept;
  /// Null: it is not this one's turn, it is longer than a page, or all pages are in use.
  void* allocate(std::size_t size, std::size_t align) noexcept;
  /// Requires contains(p). A pointer that is no live block ends the process.
  void free(void* p, const char* function) noexcept;
  struct Block {
    std::size_t size = 0, align = 0;
  };
  /// As free(), but the block stays.
  Block look(const void* p, const char* function) noexcept;

  /// Everything known of the page that p points into, or is nearest to, on standard error.
  void describe(const void* p) noexcept;
  /// The line for a fault in the pool, and what describe() knows. Nothing for a fault elsewhere.
  void report_fault(const os::Fault& fault) noexcept;

  os::RankedMutex<os::Rank::pool>& mutex() noexcept { return mutex_; }

 private:
  static constexpr std::uint32_t page_count = 256;
  enum class State : std::uint8_t { unused, live, freed };
  struct Page {
    std::byte* start = nullptr;  // of the block
    std::size_t size = 0, align = 0;
    State state = State::unused;
    Trace allocated, freed;
  };

  bool takes_turn() noexcept;
  std::byte* address(std::uint32_t page) const noexcept;
  Page& nearest(const void* p) noexcept;
  Page& checked(const void* p, const char* function) noexcept;
  const std::byte* beginning(const Page& page) const noexcept;

  os::RankedMutex<os::Rank::pool> mutex_;
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  Page* pages_ = nullptr;
  std::uint16_t queue_[page_count] = {};   // pages that may be taken, in the order in which they were freed
  std::uint32_t first_ = 0, waiting_ = 0;  // of the queue
  bool at_end_ = false;                    // where the next block lies
  std::uint64_t interval_ = 0;
  std::atomic<std::uint64_t> calls_{0};
};

}  // namespace terrace::check
