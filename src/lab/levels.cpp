// SPDX-License-Identifier: MIT OR Apache-2.0
// What a request does on its way up, and what all ways of synchronisation have in common.
#include "base/assert.h"
#include "lab/heap.h"
#include "lab/mutants.h"
#include "percpu/transaction.h"

namespace terrace::lab {

namespace {
constexpr std::size_t small_part = 8;   // requests below 1/8 of a buffer may make it be given up,
constexpr std::size_t small_tail = 64;  // larger ones only when no more than 1/64 is left
}  // namespace

level::Locality Heap::locate() const noexcept {
  if (topology_.node_count > 1) return locator_.here_on_cpu();  // the source is told
  for (int l = TERRACE_LAB_CORE; l < TERRACE_LAB_LEVELS; ++l) {
    if (levels_[l].count > 1 && !levels_[l].restartable()) return locator_.here_on_cpu();
  }
  return {};
}

unsigned Heap::index_at(int level, const level::Locality& here) const noexcept {
  const Level& l = levels_[level];
  if (l.count <= 1) return 0;
  if (l.restartable()) {
    const int slot = percpu::begin();
    percpu::invalidate();
    return slot < 0 ? 0 : static_cast<unsigned>(slot) % l.count;
  }
  switch (level) {
    case TERRACE_LAB_CORE: return cores_.core_of(here.cpu);
    case TERRACE_LAB_PROCESSOR: return here.processor % l.count;
    default: return here.node % l.count;
  }
}

Range BufferLevel::take(const level::Locality& here, Request& r) noexcept {
  const Heap::Level& l = heap.levels_[number];
  if (l.count == 0 || r.desired > l.bounds.most) return {};
  return l.restartable() ? heap.take_restartably(here, number, r) : heap.take_by_cas(here, number, r);
}

Range SourceLevel::take(const level::Locality& here, Request& r) noexcept {
  std::size_t actual = 0;
  void* const start = heap.config_.source(heap.config_.self, here.node, r.min, r.desired, &actual);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  r.from_source = true;
  return start == nullptr ? Range{} : Range{address, address + actual};
}

Range Heap::take(const level::Locality& here, int level, Request& r) noexcept {
  return above_threads_.take<Range>(here, r, static_cast<std::size_t>(max_of<int>(level, TERRACE_LAB_CORE) - TERRACE_LAB_CORE));
}

Request Heap::for_refill(const Level& l, const Buffer& b, const Request& r) const noexcept {
  return {.min = max_of(r.min + reserve_, l.bounds.least), .desired = max_of(r.min + reserve_, size_of(b))};
}

bool Heap::near_the_end() const noexcept {
  return config_.stop_permille != 0 && config_.available(config_.self) < young_bytes_ / 1000 * config_.stop_permille;
}

// A buffer with room left is not given up for a request that would waste much of it; such a one goes to the level above.
bool Heap::worth_refilling(std::size_t size, const Request& r, std::size_t room) const noexcept {
  return (r.min <= size / small_part || room <= size / small_tail || r.min < r.desired) && !near_the_end();
}

std::size_t Heap::next_size(const Thread* thread, int l) const noexcept {
  if (l == TERRACE_LAB_THREAD) return thread != nullptr ? thread->desired : levels_[l].config.size;
  const Level& level = levels_[l];
  return level.count == 0 || level.passed_over() ? 0 : size_of(level.buffers[index_here(l)]);
}

void Heap::fill(Range tail) noexcept {
  if (!tail.empty() && config_.fill != nullptr) {
    config_.fill(config_.self, pointer_to(tail.start), pointer_to(tail.end));
  }
}

void Heap::give_up(Counts& counts, Range tail) noexcept {
  if (tail.empty()) return;
  counts.partial.add();
  counts.wasted_bytes.add(tail.size());
  if (!is(Mutant::leaves_tails)) fill(tail);
}

bool Heap::joins(Range tail, Range range) const noexcept {
  return tail.end == range.start && (range.start % boundary_ != 0 || is(Mutant::joins_regions));
}

// The buffer is closed, and the caller has closed it. The request gets the first part of what is there now.
Range Heap::install(int level, Buffer& b, Range old, Range lab, const Request& r) noexcept {
  const Level& l = levels_[level];
  TERRACE_ASSERT(b.top.load(std::memory_order_relaxed) == refilling, "LAB I2: a buffer that is not closed is refilled");
  TERRACE_ASSERT(old.start <= old.end && lab.start < lab.end, "LAB I3: a buffer ends before its top");
  TERRACE_ASSERT(r.min + reserve_ <= lab.size(), "LAB I5: a range too short for its request");
  const std::size_t wanted = size_of(b);
  b.counts.labs.add();
  b.counts.lab_bytes.add(lab.size());
  if (lab.size() < wanted) b.counts.short_labs.add();
  if (l.config.sizing == TERRACE_LAB_DOUBLING) set_size(b, doubled(wanted, young_bytes_, l.count, l.bounds));
  std::uint64_t start = lab.start;
  if (const Range tail = tail_of(old.start, old.end); joins(tail, lab)) {
    start = tail.start;  // they are neighbours: nothing is lost
  } else {
    b.bytes += tail.end - b.start;
    b.start = start;
    give_up(b.counts, tail);
  }
  if (!is(Mutant::leaves_short_tails)) lab.end -= reserve_;  // I5
  const std::uint64_t next = start + min_of(r.desired, lab.end - start);
  if (is(Mutant::end_after_top)) {
    b.top.store(next, std::memory_order_release);
    delay(1);
    b.end.store(lab.end, std::memory_order_relaxed);
    return {start, next};
  }
  b.end.store(lab.end, std::memory_order_relaxed);  // relaxed: published by the next store
  delay(1);
  // [L1][L2] release, pairs with the acquire of whoever takes from the buffer: end, start and counts are seen.
  b.top.store(next, std::memory_order_release);
  return {start, next};
}

bool Sidelined::put(Range lab) noexcept {
  const os::LockGuard guard(mutex_);
  const unsigned n = count_.load(std::memory_order_relaxed);
  if (n == capacity) return false;
  ranges_[n] = lab;
  count_.store(n + 1, std::memory_order_relaxed);
  return true;
}

Range Sidelined::take(std::size_t min) noexcept {
  if (count() == 0) return {};
  const os::LockGuard guard(mutex_);
  const unsigned n = count_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < n; ++i) {
    if (ranges_[i].size() < min) continue;
    const Range found = ranges_[i];
    ranges_[i] = ranges_[n - 1];
    count_.store(n - 1, std::memory_order_relaxed);
    return found;
  }
  return {};
}

Range Sidelined::cut(const Request& r, std::size_t least) noexcept {
  if (count() == 0) return {};
  const os::LockGuard guard(mutex_);
  const unsigned n = count_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < n; ++i) {
    Range& range = ranges_[i];
    std::size_t bytes = min_of(r.desired, range.size());
    if (bytes != range.size() && range.size() - bytes < least) bytes = range.size() < least ? 0 : range.size() - least;
    if (bytes < r.min) continue;
    const Range piece{range.start, range.start + bytes};
    range.start += bytes;
    if (range.empty()) {
      range = ranges_[n - 1];
      count_.store(n - 1, std::memory_order_relaxed);
    }
    return piece;
  }
  return {};
}

std::size_t Sidelined::bytes() noexcept {
  const os::LockGuard guard(mutex_);
  std::size_t sum = 0;
  for (unsigned i = 0; i < count(); ++i) sum += ranges_[i].size();
  return sum;
}

}  // namespace terrace::lab
