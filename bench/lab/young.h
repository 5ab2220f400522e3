// SPDX-License-Identifier: MIT OR Apache-2.0
// A young space with a stop-the-world collection that finds everything dead: what a LAB engine sees of a runtime.
//
// Threads allocate; whoever finds the space exhausted collects. A collection stops all threads that are not in a safe region
// (Young::Blocked: asleep, waiting), retires all buffers, walks the space if asked to, waits for as long as a collection would
// take, and resets the space.
#pragma once

#include "terrace/lab.h"
#include "world.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <thread>

namespace lab_bench {

/// Every object, fillers included, begins with its size.
struct Header {
  std::uint64_t bytes;
  static constexpr std::uint64_t filler = std::uint64_t{1} << 63;
};

class Young {
 public:
  struct Options {
    std::size_t bytes = std::size_t{64} << 20;
    std::chrono::microseconds pause{0};  // of a collection, besides what it does
    bool walk = false;                   // check at each collection that the space is walkable
    std::chrono::microseconds block{0};  // that the source sleeps: it maps memory, or waits for a lock
  };

  /// source, available, fill and self of `config` are set here.
  Young(Options options, terrace_lab_config config) : options_(options) {
    space_ = static_cast<char*>(mmap(nullptr, options.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (space_ == MAP_FAILED) std::abort();
    // Faults are no part of the experiment. As HotSpot's -XX:+UseTransparentHugePages -XX:+AlwaysPreTouch.
    madvise(space_, options.bytes, MADV_HUGEPAGE);
    for (std::size_t i = 0; i < options.bytes; i += page) *static_cast<volatile char*>(space_ + i) = 0;
    config.self = this;
    config.source = source;
    config.available = available;
    config.fill = fill;
    config.young_bytes = options.bytes;
    const std::size_t bytes = terrace_lab_heap_bytes(&config);
    if (bytes == 0) {
      std::fputs("not a configuration\n", stderr);
      std::abort();
    }
    heap_memory_bytes_ = bytes;
    heap_memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    heap_ = terrace_lab_init(heap_memory_, &config);
    top_.store(0);
  }
  ~Young() {
    munmap(heap_memory_, heap_memory_bytes_);
    munmap(space_, options_.bytes);
  }
  Young(const Young&) = delete;
  Young& operator=(const Young&) = delete;

  terrace_lab_heap* heap() const { return heap_; }
  std::uint64_t collections() const { return collections_; }
  std::chrono::nanoseconds time_in_collections() const { return time_in_collections_; }

  /// An allocating thread, for its life.
  class Mutator {
   public:
    explicit Mutator(Young& young) : young_(young) {
      terrace_lab_attach(young.heap_, &lab_);
      young_.world_.enter();
    }
    ~Mutator() {
      terrace_lab_detach(&lab_);
      young_.world_.leave();
    }
    Mutator(const Mutator&) = delete;
    Mutator& operator=(const Mutator&) = delete;

    /// `bytes` is a multiple of the alignment, at least sizeof(Header). Collects when it has to.
    void* allocate(std::size_t bytes) {
      poll();
      char* const top = lab_.top;
      if (bytes > static_cast<std::size_t>(lab_.end - top)) [[unlikely]]
        return allocate_slow(bytes);
      lab_.top = top + bytes;
      reinterpret_cast<Header*>(top)->bytes = bytes;
      return top;
    }
    /// The same past the thread level.
    void* allocate_at(int level, std::size_t bytes) {
      poll();
      for (;;) {
        if (void* const p = terrace_lab_allocate_at(&lab_, level, bytes)) [[likely]] {
          static_cast<Header*>(p)->bytes = bytes;
          return p;
        }
        young_.collect();
      }
    }
    /// For those who call the engine themselves: between two objects, and after it has returned nothing.
    void poll() {
      if (young_.world_.is_stopped()) [[unlikely]] {
        young_.world_.leave();
        young_.world_.enter();
      }
    }
    void collect() { young_.collect(); }
    /// Objects that allocate() did not take from the thread's buffer.
    std::uint64_t past_thread() const { return past_thread_; }
    terrace_lab_thread& lab() { return lab_; }

   private:
    [[gnu::noinline]] void* allocate_slow(std::size_t bytes) {
      for (;;) {
        if (void* const p = terrace_lab_allocate_slow(&lab_, bytes)) {
          static_cast<Header*>(p)->bytes = bytes;
          if (static_cast<char*>(p) + bytes != lab_.top) ++past_thread_;
          return p;
        }
        young_.collect();
      }
    }

    Young& young_;
    terrace_lab_thread lab_;
    std::uint64_t past_thread_ = 0;
  };

  /// While one exists, its thread does not allocate, and collections do not wait for it.
  class Blocked {
   public:
    explicit Blocked(Young& young) : young_(young) { young_.world_.leave(); }
    ~Blocked() { young_.world_.enter(); }
    Blocked(const Blocked&) = delete;
    Blocked& operator=(const Blocked&) = delete;

   private:
    Young& young_;
  };

 private:
  static constexpr std::size_t page = 4096;

  static void* source(void* self, unsigned, std::size_t min, std::size_t desired, std::size_t* actual) {
    auto& young = *static_cast<Young*>(self);
    if (young.options_.block.count() != 0) std::this_thread::sleep_for(young.options_.block);
    std::size_t top = young.top_.load(std::memory_order_relaxed);
    for (;;) {
      const std::size_t room = young.options_.bytes - top;
      const std::size_t n = desired <= room ? desired : min <= room ? room : 0;
      if (n == 0) return nullptr;
      if (young.top_.compare_exchange_weak(top, top + n, std::memory_order_relaxed)) {
        *actual = n;
        return young.space_ + top;
      }
    }
  }
  static std::size_t available(void* self) {
    const auto& young = *static_cast<Young*>(self);
    return young.options_.bytes - young.top_.load(std::memory_order_relaxed);
  }
  static void fill(void*, void* start, void* end) {
    static_cast<Header*>(start)->bytes =
        Header::filler | static_cast<std::uint64_t>(static_cast<char*>(end) - static_cast<char*>(start));
  }

  void collect() {
    const auto begin = std::chrono::steady_clock::now();
    if (!world_.try_stop()) return;
    if (terrace_lab_retire_all(heap_) != 0) std::abort();
    if (options_.walk) walk();
    if (options_.pause.count() != 0) {
      const auto end = std::chrono::steady_clock::now() + options_.pause;
      while (std::chrono::steady_clock::now() < end) {
      }
    }
    top_.store(0);
    terrace_lab_collected(heap_, 0);
    ++collections_;
    time_in_collections_ += std::chrono::steady_clock::now() - begin;
    world_.start();
  }

  void walk() const {
    const std::size_t top = top_.load();
    std::size_t at = 0;
    while (at < top) {
      const std::uint64_t n = reinterpret_cast<const Header*>(space_ + at)->bytes & ~Header::filler;
      if (n == 0 || n > top - at) {
        std::fprintf(stderr, "no object at %zu of %zu\n", at, top);
        std::abort();
      }
      at += n;
    }
  }

  Options options_;
  char* space_ = nullptr;
  void* heap_memory_ = nullptr;
  std::size_t heap_memory_bytes_ = 0;
  terrace_lab_heap* heap_ = nullptr;
  World world_;
  std::uint64_t collections_ = 0;
  std::chrono::nanoseconds time_in_collections_{0};
  alignas(128) std::atomic<std::size_t> top_{0};
};

}  // namespace lab_bench
