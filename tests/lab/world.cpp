// SPDX-License-Identifier: MIT OR Apache-2.0
#include "world.h"

#include <sys/mman.h>

namespace lab_oracle {

World::World(Space& space, terrace_lab_config config) : space_(space) {
  space.describe(config);
  memory_bytes_ = terrace_lab_heap_bytes(&config);
  if (memory_bytes_ == 0) fail("not a configuration", 0);
  memory_ = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  heap_ = terrace_lab_init(memory_, &config);
}

World::~World() { munmap(memory_, memory_bytes_); }

World::Mutator::Mutator(World& world, std::uint32_t stamp) : world_(world), stamp_(stamp) {
  world_.enter();
  terrace_lab_attach(world.heap_, &lab_);
}

World::Mutator::~Mutator() {
  terrace_lab_detach(&lab_);
  world_.leave();
}

void World::Mutator::poll() {
  if (!world_.stop_.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(world_.mutex_);
  world_.park(lock);
}

void* World::Mutator::ask(From from, int level, std::size_t bytes, std::size_t* actual) {
  *actual = bytes;
  switch (from) {
    case From::thread: return terrace_lab_allocate(&lab_, bytes);
    case From::core: return terrace_lab_allocate_core(&lab_, bytes);
    case From::level: return terrace_lab_allocate_at(&lab_, level, bytes);
    case From::range: return terrace_lab_take(world_.heap_, level, bytes, 4 * bytes, actual);
    case From::aligned: {
      void* const p = terrace_lab_allocate_aligned(&lab_, bytes, 256);
      if (reinterpret_cast<std::uintptr_t>(p) % 256 != 0) fail("an object that is not aligned", bytes);
      return p;
    }
  }
  return nullptr;
}

void World::Mutator::allocate(From from, int level, std::size_t bytes) {
  poll();
  for (;;) {
    std::size_t actual = 0;
    if (void* const p = ask(from, level, bytes, &actual)) {
      if (actual < bytes) fail("a range shorter than the least", actual);
      world_.space_.take(p, actual, stamp_);
      return;
    }
    if (++refused_ % 2 == 0 || terrace_lab_drain(world_.heap_) == 0) world_.collect();
  }
}

void World::Mutator::install(int level, std::size_t bytes) {
  poll();
  std::size_t actual = 0;
  void* const p = world_.space_.get_elsewhere(bytes, 2 * bytes, &actual);
  if (p != nullptr && terrace_lab_install(world_.heap_, level, p, actual) != 0) world_.space_.take(p, actual, stamp_);
}

void World::enter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !stop_.load(); });
  ++running_;
}

void World::leave() {
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

void World::park(std::unique_lock<std::mutex>& lock) {
  --running_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return !stop_.load(); });
  ++running_;
}

void World::collect() {
  std::unique_lock lock(mutex_);
  if (stop_.load()) {  // somebody else is at it
    park(lock);
    return;
  }
  stop_.store(true);
  changed_.wait(lock, [this] { return running_ == 1; });
  check_all();
  stop_.store(false);
  changed_.notify_all();
}

void World::collect_from_outside() {
  enter();
  collect();
  leave();
}

void World::check_all() {
  if (terrace_lab_retire_all(heap_) != 0) fail("a buffer is being refilled at a safepoint", 0);
  terrace_lab_walk(
      heap_, [](void*, int level, void*, void*) { fail("a buffer with a tail, at a level", static_cast<unsigned>(level)); },
      nullptr);
  const Space::Sums sums = space_.check();
  if (sums.objects + sums.fillers != sums.handed_out) fail("bytes that are neither", sums.handed_out);
  total_.objects += sums.objects;
  total_.fillers += sums.fillers;
  total_.handed_out += sums.handed_out;
  total_.gaps += sums.gaps;
  check_counters();
  space_.empty();
  terrace_lab_collected(heap_, 0);
  ++collections_;
}

// What was filled is what was given up or sidelined until now; what was handed out is that and the objects.
void World::check_counters() const {
  terrace_lab_counters c;
  terrace_lab_read_counters(heap_, &c);
  std::uint64_t filled = total_.gaps + c.padding_bytes;
  for (const terrace_lab_counts& l : c.level) {
    filled += l.wasted_bytes + l.unused_sidelined_bytes;
    if (l.wasted_bytes > l.lab_bytes) fail("more is wasted than was had", l.wasted_bytes);
    if (l.retired_bytes > l.wasted_bytes) fail("more is retired than wasted", l.retired_bytes);
    if (l.unused_sidelined_bytes > l.sidelined_bytes + l.drained_bytes)
      fail("more was left sidelined than put aside", l.sidelined_bytes);
  }
  if (filled != total_.fillers) fail("counted bytes of fillers", filled);
  if (c.direct_bytes > total_.objects) fail("counted bytes of direct objects", c.direct_bytes);
  if (c.collections != collections_) fail("collections", c.collections);
}

}  // namespace lab_oracle
