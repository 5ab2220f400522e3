// SPDX-License-Identifier: MIT OR Apache-2.0
// The thread level: the TLAB, when it is refilled and when it is kept, and objects that do not come from it.
#include "base/assert.h"
#include "lab/heap.h"

#include <new>

namespace terrace::lab {

namespace {
constexpr std::size_t waste_fraction = 64;   // HotSpot's TLABRefillWasteFraction: a larger tail is kept,
constexpr std::size_t waste_increment = 32;  // but by this much less insistently each time
}  // namespace

void Heap::attach(Thread& thread) noexcept {
  new (&thread) Thread();
  thread.heap = this;
  if (has_area_ && levels_[TERRACE_LAB_CORE].restartable()) {
    thread.area = area_;
    thread.core_buffers = reinterpret_cast<std::byte*>(levels_[TERRACE_LAB_CORE].buffers);
  }
  const Level& l = levels_[TERRACE_LAB_THREAD];
  const os::LockGuard guard(threads_mutex_);
  thread.desired = l.config.size;
  thread.waste_limit = thread.desired / waste_fraction;
  thread.next = threads_;
  if (threads_ != nullptr) threads_->previous = &thread;
  threads_ = &thread;
}

void Heap::detach(Thread& thread) noexcept {
  const os::LockGuard guard(threads_mutex_);
  if (!by_core_) unused_ += tail_of(thread.top, thread.end).size();
  retire(thread);
  (thread.previous != nullptr ? thread.previous->next : threads_) = thread.next;
  if (thread.next != nullptr) thread.next->previous = thread.previous;
  departed_.direct.add(thread.direct.read());
  departed_.direct_bytes.add(thread.direct_bytes.read());
  departed_.padding_bytes.add(thread.padding_bytes.read());
  departed_.bytes += thread.bytes;
  departed_allocating_ += thread.bytes != 0 || thread.active != 0 ? 1 : 0;
  add(departed_.counts, thread.counts);
  thread.heap = nullptr;
}

// The TLAB is given up: by its thread, or at a safepoint.
void Heap::retire(Thread& thread) noexcept {
  TERRACE_ASSERT(thread.start <= thread.top && thread.top <= thread.end, "LAB I3: a thread's buffer ends before its top");
  thread.bytes += thread.top - thread.start;
  give_up(thread.counts, tail_of(thread.top, thread.end));
  thread.top = thread.end = thread.start = 0;
}

void* Heap::allocate_at(Thread& thread, int level, std::size_t size) noexcept {
  Request r{.min = size, .desired = size};
  const Range got = take(locate(), level, r);
  if (got.empty()) return nullptr;
  thread.bytes += size;
  if (r.from_source) {
    thread.direct.add();
    thread.direct_bytes.add(size);
  }
  return pointer_to(got.start);
}

bool Heap::refill_thread(Thread& thread, std::size_t size) noexcept {
  const Level& l = levels_[TERRACE_LAB_THREAD];
  Request r{.min = max_of(size + reserve_, l.bounds.least), .desired = max_of(size + reserve_, thread.desired)};
  const Range lab = take(locate(), TERRACE_LAB_CORE, r);
  if (lab.empty()) return false;
  thread.counts.labs.add();
  thread.counts.lab_bytes.add(lab.size());
  if (lab.size() < thread.desired) thread.counts.short_labs.add();
  if (!joins(tail_of(thread.top, thread.end), lab)) {  // neighbours: nothing is lost
    retire(thread);
    thread.top = thread.start = lab.start;
  }
  thread.end = lab.end - reserve_;  // I5
  thread.waste_limit = thread.desired / waste_fraction;
  if (l.config.sizing == TERRACE_LAB_DOUBLING) {
    thread.desired = doubled(thread.desired, young_bytes_, allocating_threads_, l.bounds);
  }
  return true;
}

void* Heap::allocate(Thread& thread, std::size_t size) noexcept {
  if (by_core_ || !exists(TERRACE_LAB_THREAD)) return allocate_core(thread, size);
  const std::size_t tail = thread.end - thread.top;
  if (size <= tail) {
    thread.top += size;
    return pointer_to(thread.top - size);
  }
  if (tail > thread.waste_limit) {
    thread.waste_limit += waste_increment;
  } else if (size <= thread.desired && !near_the_end() && refill_thread(thread, size)) {
    thread.top += size;
    return pointer_to(thread.top - size);
  }
  return allocate_at(thread, TERRACE_LAB_CORE, size);
}

}  // namespace terrace::lab
