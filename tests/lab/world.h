// SPDX-License-Identifier: MIT OR Apache-2.0
// Allocating threads and collections that stop them. At each collection the space is checked, and the counters against it.
#pragma once

#include "space.h"
#include "terrace/lab.h"

#include <condition_variable>
#include <mutex>

namespace lab_oracle {

class World {
 public:
  World(Space& space, terrace_lab_config config);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  terrace_lab_heap* heap() const { return heap_; }
  std::uint64_t collections() const { return collections_; }
  std::uint64_t objects_bytes() const { return total_.objects; }
  /// By a thread that is none of the world's.
  void collect_from_outside();

  class Mutator {
   public:
    Mutator(World& world, std::uint32_t stamp);
    ~Mutator();
    Mutator(const Mutator&) = delete;
    Mutator& operator=(const Mutator&) = delete;

    /// Where an object is asked for: the thread, the core's short cut, a level.
    enum class From { thread, core, level, range, aligned };
    /// Collects when there is no room.
    void allocate(From from, int level, std::size_t bytes);
    void collect() { world_.collect(); }
    void drain() { terrace_lab_drain(world_.heap_); }
    /// Gives the engine a range that it has not asked for.
    void install(int level, std::size_t bytes);

   private:
    // Of at least `bytes`; *actual says how many.
    void* ask(From from, int level, std::size_t bytes, std::size_t* actual);
    void poll();
    World& world_;
    std::uint32_t stamp_;
    std::uint32_t refused_ = 0;
    terrace_lab_thread lab_;
  };

 private:
  void enter();
  void leave();
  void park(std::unique_lock<std::mutex>& lock);
  void collect();
  void check_all();
  void check_counters() const;

  Space& space_;
  void* memory_;
  std::size_t memory_bytes_;
  terrace_lab_heap* heap_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stop_{false};
  unsigned running_ = 0;
  std::uint64_t collections_ = 0;
  Space::Sums total_{};
};

}  // namespace lab_oracle
