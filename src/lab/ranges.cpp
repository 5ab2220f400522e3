// SPDX-License-Identifier: MIT OR Apache-2.0
// Requests without a thread, ranges that the embedder has got elsewhere, and how much there is.
#include "lab/heap.h"
#include "percpu/transaction.h"

namespace terrace::lab {

Range Heap::take_range(int level, Request& r) noexcept {
  const Range got = take(locate(), level, r);
  if (r.from_source && !got.empty()) count_direct(got.size());
  return got;
}

void Heap::count_direct(std::size_t bytes) noexcept {
  direct_.add();
  direct_bytes_.add(bytes);
}

bool Heap::put_aside(Level& l, Buffer& b, Range lab) noexcept {
  if (!l.sidelined.put(lab)) return false;
  b.sidelined.fetch_add(1, std::memory_order_relaxed);  // relaxed: numbers for people
  b.sidelined_bytes.fetch_add(lab.size(), std::memory_order_relaxed);
  return true;
}

// As a refill that asks nobody. The range goes into the buffer if what that has left is worth no buffer: threads that have got
// ranges at the same time do not fill each other's.
Heap::Install Heap::install_by_cas(int level, Range range) noexcept {
  Level& l = levels_[level];
  Buffer& b = l.buffers[index_here(level)];
  // [L1] acquire, as in take_from()
  std::uint64_t seen = b.top.load(std::memory_order_acquire);
  const std::size_t room = b.end.load(std::memory_order_relaxed) - seen;  // of a newer end: not installed, or top is another
  if (!is_closed(seen) && room < l.bounds.least &&
      b.top.compare_exchange_strong(seen, refilling, std::memory_order_acquire, std::memory_order_relaxed)) {  // [L1]
    install(level, b, {seen, b.end.load(std::memory_order_relaxed)}, range, {.min = 0, .desired = 0});
    return Install::done;
  }
  return put_aside(l, b, range) ? Install::done : Install::busy;
}

Heap::Install Heap::install_restartably(int level, Range range) noexcept {
  Level& l = levels_[level];
  const int slot = percpu::begin();
  if (slot < 0 || static_cast<unsigned>(slot) >= l.count) {
    percpu::invalidate();
    return put_aside(l, l.buffers[0], range) ? Install::done : Install::busy;
  }
  Buffer& b = l.buffers[slot];
  const Range old{b.top.load(std::memory_order_acquire), b.end.load(std::memory_order_relaxed)};  // [L2]
  const bool closed = !is_closed(old.start) && old.end - old.start < l.bounds.least &&
                      close(l, static_cast<unsigned>(slot), old.start, old.end);
  percpu::invalidate();
  if (!closed) return put_aside(l, b, range) ? Install::done : Install::busy;
  install(level, b, old, range, {.min = 0, .desired = 0});
  return Install::done;
}

Heap::Install Heap::install_range(int level, Range range) noexcept {
  const Level& l = levels_[level];
  if (l.count == 0) return Install::no_level;
  if (l.passed_over()) return Install::busy;
  return l.restartable() ? install_restartably(level, range) : install_by_cas(level, range);
}

namespace {

// What can be taken from a buffer at this moment.
std::size_t room_of(const Buffer& b) noexcept {
  const std::uint64_t top = b.top.load(std::memory_order_acquire);  // [L1] acquire: end belongs to it
  const std::uint64_t end = b.end.load(std::memory_order_relaxed);
  return top < end ? end - top : 0;  // closed: above every end
}

}  // namespace

std::size_t Heap::max_take(int level, std::size_t enough) const noexcept {
  const level::Locality here = locate();
  std::size_t most = 0;
  for (int i = max_of<int>(level, TERRACE_LAB_CORE); i < TERRACE_LAB_LEVELS; ++i) {
    const Level& l = levels_[i];
    const unsigned own = index_at(i, here);
    // By critical sections the neighbours' buffers can not be taken from.
    const unsigned in_reach = l.restartable() ? min_of(l.count, 1U) : l.count;
    for (unsigned n = 0; n < in_reach; ++n) {
      most = max_of(most, room_of(l.buffers[(own + n) % l.count]));
      if (most >= enough) return most;
    }
  }
  return most;
}

std::size_t Heap::free_bytes(int level) noexcept {
  std::size_t sum = 0;
  if (level == TERRACE_LAB_THREAD) {
    const os::LockGuard guard(threads_mutex_);
    for (const Thread* t = threads_; t != nullptr; t = t->next) sum += tail_of(t->top, t->end).size();
    return sum;
  }
  Level& l = levels_[level];
  for (unsigned i = 0; i < l.count; ++i) {
    const Buffer& b = l.buffers[i];
    const std::uint64_t top = b.top.load(std::memory_order_acquire);  // [L1]
    const Range tail = tail_of(top, b.end.load(std::memory_order_relaxed));
    if (tail.start < tail.end) sum += tail.size();
  }
  return sum + l.sidelined.bytes();
}

}  // namespace terrace::lab
