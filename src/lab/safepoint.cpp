// SPDX-License-Identifier: MIT OR Apache-2.0
// What happens while the world is stopped: one thread, everything may be read and written plainly.
#include "lab/heap.h"

namespace terrace::lab {

// Bytes of tails.
std::uint64_t Heap::retire_buffers(int level) noexcept {
  Level& l = levels_[level];
  std::uint64_t unused = 0;
  for (unsigned i = 0; i < l.count; ++i) {
    Buffer& b = l.buffers[i];
    const Range tail = tail_of(b.top.load(std::memory_order_relaxed), b.end.load(std::memory_order_relaxed));
    b.bytes += tail.start - b.start;
    b.start = 0;
    b.counts.retired_bytes.add(tail.size());
    unused += tail.size();
    give_up(b.counts, tail);
    b.end.store(0, std::memory_order_relaxed);
    b.top.store(0, std::memory_order_relaxed);
  }
  for (unsigned i = 0; i < l.sidelined.count(); ++i) {
    const Range lab = l.sidelined.at(i);
    l.unused_sidelined.add();
    l.unused_sidelined_bytes.add(lab.size());
    fill(lab);
  }
  l.sidelined.clear();
  return unused;
}

bool Heap::retire_all() noexcept {
  const os::LockGuard guard(threads_mutex_);
  for (int level = TERRACE_LAB_CORE; level < TERRACE_LAB_LEVELS; ++level) {
    const Level& l = levels_[level];
    for (unsigned i = 0; i < l.count; ++i) {
      // [L1][L2] acquire, pairs with the release that opens the buffer, if this is a safepoint.
      if (is_closed(l.buffers[i].top.load(std::memory_order_acquire))) return false;
    }
  }
  for (Thread* t = threads_; t != nullptr; t = t->next) {
    const std::uint64_t tail = tail_of(t->top, t->end).size();
    t->counts.retired_bytes.add(tail);
    if (!by_core_) unused_ += tail;
    retire(*t);
  }
  for (int level = TERRACE_LAB_CORE; level < TERRACE_LAB_LEVELS; ++level) {
    const std::uint64_t unused = retire_buffers(level);
    if (by_core_ && level == TERRACE_LAB_CORE) unused_ += unused;
  }
  return true;
}

// The sizes that all buffers of a level may have together in the space as it is.
void Heap::apply_limit() noexcept {
  for (int level = TERRACE_LAB_CORE; level < TERRACE_LAB_LEVELS; ++level) {
    Level& l = levels_[level];
    if (l.count == 0) continue;
    l.bounds.most = l.config.max_size;
    if (config_.buffers_permille != 0) {
      const std::size_t even = young_bytes_ / 1000 * config_.buffers_permille / l.count;
      l.bounds.most = min_of(l.bounds.most, round_down(even, config_.alignment));
      if (l.bounds.most < l.bounds.least) l.bounds.most = 0;
    }
    for (unsigned i = 0; i < l.count; ++i) {
      Buffer& b = l.buffers[i];
      set_size(b, l.bounds.clamp(l.config.sizing == TERRACE_LAB_FIXED ? l.config.size : size_of(b)));
    }
  }
}

void Heap::resize_buffers(int level, std::uint64_t allocated) noexcept {
  Level& l = levels_[level];
  unsigned used = 0;
  std::uint64_t through = 0;
  for (unsigned i = 0; i < l.count; ++i) {
    used += l.buffers[i].bytes != 0 ? 1 : 0;
    through += l.buffers[i].bytes;
  }
  allocated = max_of(allocated, through);  // objects that come from the core's buffers are not counted by the threads
  for (unsigned i = 0; i < l.count; ++i) {
    Buffer& b = l.buffers[i];
    if (l.config.sizing == TERRACE_LAB_GROWING) {
      b.share.sample(b.bytes, allocated);
      set_size(b, grown(b.share, young_bytes_, used, level, l.bounds));
    } else if (l.config.sizing == TERRACE_LAB_DOUBLING) {
      set_size(b, decayed(size_of(b), l.bounds));
    }
    b.bytes = 0;
  }
}

void Heap::report_tlabs(unsigned threads, std::uint64_t unused, std::size_t largest) noexcept {
  const os::LockGuard guard(threads_mutex_);
  reported_threads_ += threads;
  reported_largest_ = max_of(reported_largest_, largest);
  if (!by_core_) unused_ += unused;
}

// The largest size that a buffer of the level that objects come from could have had.
std::size_t Heap::largest_size() const noexcept {
  std::size_t largest = by_core_ ? 0 : reported_largest_;
  if (by_core_) {
    const Level& l = levels_[TERRACE_LAB_CORE];
    for (unsigned i = 0; i < l.count; ++i) largest = max_of(largest, size_of(l.buffers[i]));
  } else {
    for (const Thread* t = threads_; t != nullptr; t = t->next) largest = max_of(largest, t->desired);
  }
  return largest;
}

// Whether objects come by core from now on.
bool Heap::by_core_next() noexcept {
  if (config_.association == TERRACE_LAB_AUTO) return trials_.by_core_next(by_core_, unused_, young_bytes_);
  if (config_.association != TERRACE_LAB_FLIP) return by_core_;
  const unsigned processors = levels_[TERRACE_LAB_CORE].restartable() ? cores_.cpu_count : cores_.count;
  return by_core_ != should_flip(by_core_, unused_, largest_size(), processors, allocating_threads_);
}

void Heap::associate() noexcept {
  const bool before = by_core_;
  by_core_ = by_core_next();
  flips_ += by_core_ != before ? 1 : 0;
  unused_ = 0;
}

void Heap::collected(std::size_t young_bytes) noexcept {
  const os::LockGuard guard(threads_mutex_);
  if (young_bytes != 0) young_bytes_ = young_bytes;
  ++collections_;
  std::uint64_t allocated = departed_.bytes;
  unsigned allocating = departed_allocating_ + reported_threads_;
  for (Thread* t = threads_; t != nullptr; t = t->next) {
    allocated += t->bytes;
    allocating += t->bytes != 0 || t->active != 0 ? 1 : 0;
  }
  allocating_threads_ = max_of(allocating, 1U);

  associate();
  reported_threads_ = 0;
  reported_largest_ = 0;
  apply_limit();
  const Level& tlab = levels_[TERRACE_LAB_THREAD];
  for (Thread* t = threads_; t != nullptr; t = t->next) {
    if (tlab.config.sizing == TERRACE_LAB_GROWING && !by_core_) {
      t->share.sample(t->bytes, allocated);
      t->desired = grown(t->share, young_bytes_, allocating_threads_, TERRACE_LAB_THREAD, tlab.bounds);
    } else if (tlab.config.sizing == TERRACE_LAB_DOUBLING) {
      t->desired = decayed(t->desired, tlab.bounds);
    }
    t->earlier += t->bytes;
    t->bytes = 0;
    // A thread that comes back from this safepoint arms its section, and says that it is active. Where it may find it armed
    // still, it counts as allocating for as long as it is attached.
    if (sections_end_in_calls_) t->active = 0;
  }
  departed_.bytes = departed_allocating_ = 0;
  for (int level = TERRACE_LAB_CORE; level < TERRACE_LAB_LEVELS; ++level) resize_buffers(level, allocated);

  if (by_core_) ++collections_by_core_;
}

void Heap::walk(terrace_lab_visitor* visit, void* argument) noexcept {
  const auto show = [&](int level, Range tail) {
    if (!tail.empty()) visit(argument, level, pointer_to(tail.start), pointer_to(tail.end));
  };
  const os::LockGuard guard(threads_mutex_);
  for (const Thread* t = threads_; t != nullptr; t = t->next) show(TERRACE_LAB_THREAD, tail_of(t->top, t->end));
  for (int level = TERRACE_LAB_CORE; level < TERRACE_LAB_LEVELS; ++level) {
    const Level& l = levels_[level];
    for (unsigned i = 0; i < l.count; ++i) {
      const Buffer& b = l.buffers[i];
      show(level, tail_of(b.top.load(std::memory_order_relaxed), b.end.load(std::memory_order_relaxed)));
    }
    for (unsigned i = 0; i < l.sidelined.count(); ++i) show(level, l.sidelined.at(i));
  }
}

}  // namespace terrace::lab
