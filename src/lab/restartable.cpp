// SPDX-License-Identifier: MIT OR Apache-2.0
// The core's buffer without atomic instructions: [MP-RCS] section 5, on the critical sections of percpu/transaction.h. Objects
// are taken by a bump sequence. A refill:
//
//   begin on slot s, look at its top and end
//   take a LAB from the sidelined, or from above                     long: the thread may be preempted or block
//   reopen, whatever the section says: from Linux 6.19 on it may read as valid after a system call in which others had the
//           slot. Still slot s, top and end as they were: go on
//           Otherwise somebody else has worked on the slot: sideline the LAB, begin again
//   close: conditional store of `refilling` into top                 now the buffer is this thread's alone
//   end = the LAB's end;  top = its start + n                         plain stores, wherever the thread is by now
//
// [MP-RCS] stores limit and size in one word of 64 bits; with addresses of that width one conditional store can not carry both,
// so it closes the buffer instead, for the time of a few instructions. Who meets a closed buffer asks the level above.
#include "lab/heap.h"
#include "lab/mutants.h"
#include "percpu/transaction.h"

namespace terrace::lab {

Range Heap::take_restartably(const level::Locality& here, int level, const Request& r) noexcept {
  Level& l = levels_[level];
  for (;;) {
    std::uint64_t start = 0;
    if (slots_.bump(r.desired, start)) [[likely]]
      return {start, start + r.desired};
    if (r.min < r.desired) {
      if (const Range tail = take_tail(l, r); !tail.empty()) return tail;
    }
    bool again = false;
    const Range got = refill_restartably(here, level, r, again);
    if (!got.empty()) return got;
    if (!again) return l.sidelined.cut(r, min_fill_);
  }
}

// What is left, if it is enough: top = end.
Range Heap::take_tail(Level& l, const Request& r) noexcept {
  const int slot = percpu::begin();
  if (slot < 0 || static_cast<unsigned>(slot) >= l.count) {
    percpu::invalidate();
    return {};
  }
  Buffer& b = l.buffers[slot];
  const std::uint64_t top = b.top.load(std::memory_order_acquire);  // [L2] acquire, pairs with the last store of install()
  const std::uint64_t end = b.end.load(std::memory_order_relaxed);
  const bool taken =
      !is_closed(top) && end - top >= r.min && end - top < r.desired && percpu::store64(&b.top, end) == arch::Sequence::done;
  percpu::invalidate();
  return taken ? Range{top, end} : Range{};
}

// Whether the buffer of `slot` is as it is said to be and is closed now.
bool Heap::close(Level& l, unsigned slot, std::uint64_t top, std::uint64_t end) noexcept {
  Buffer& b = l.buffers[slot];
  for (bool first = true;; first = false) {
    const bool interrupted = !first || !percpu::valid();                // a number for people: see above
    if (interrupted) b.failed.fetch_add(1, std::memory_order_relaxed);  // relaxed: as that
    if (interrupted || !is(Mutant::trusts_the_section)) {
      const int now = percpu::begin();
      const bool same_slot = now == static_cast<int>(slot) || is(Mutant::reopens_on_another_slot);
      // relaxed: the conditional store below looks again, in effect
      const bool same_words = b.top.load(std::memory_order_relaxed) == top && b.end.load(std::memory_order_relaxed) == end;
      if (!same_slot || (!same_words && !is(Mutant::reopens_over_other_words))) {
        b.invalid.fetch_add(1, std::memory_order_relaxed);
        return false;
      }
    }
    delay(0);
    if (is(Mutant::closes_by_plain_store)) {
      b.top.store(refilling, std::memory_order_relaxed);
      return true;
    }
    if (percpu::store64(&b.top, refilling) == arch::Sequence::done) return true;
  }
}

void Heap::sideline(Level& l, Buffer& b, Range lab) noexcept {
  if (is(Mutant::loses_the_sidelined)) return;
  if (put_aside(l, b, lab)) return;
  b.sidelined.fetch_add(1, std::memory_order_relaxed);  // it will not be used any more
  b.sidelined_bytes.fetch_add(lab.size(), std::memory_order_relaxed);
  l.unused_sidelined.add();
  l.unused_sidelined_bytes.add(lab.size());
  fill(lab);
}

// `again`: the slot is not as it was; the caller begins anew.
Range Heap::refill_restartably(const level::Locality& here, int level, const Request& r, bool& again) noexcept {
  Level& l = levels_[level];
  const int slot = percpu::begin();
  if (slot < 0 || static_cast<unsigned>(slot) >= l.count) {
    percpu::invalidate();
    return {};
  }
  Buffer& b = l.buffers[slot];
  const Range old{b.top.load(std::memory_order_acquire), b.end.load(std::memory_order_relaxed)};  // [L2]
  if (is_closed(old.start)) {
    percpu::invalidate();
    b.busy.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  again = r.desired <= old.size();  // somebody else has refilled it
  if (again || !worth_refilling(size_of(b), r, old.size())) {
    percpu::invalidate();
    return {};
  }
  Request wanted = for_refill(l, b, r);
  Range lab = l.sidelined.take(wanted.min);
  if (lab.empty()) lab = take(here, level + 1, wanted);
  if (lab.empty()) {
    percpu::invalidate();
    return {};
  }
  delay(0);
  if (!close(l, static_cast<unsigned>(slot), old.start, old.end)) {
    percpu::invalidate();
    sideline(l, b, lab);
    if (is(Mutant::installs_the_sidelined)) return {lab.start, lab.start + min_of(r.desired, lab.size())};
    again = true;
    return {};
  }
  percpu::invalidate();
  b.counts.transactions.add();
  return install(level, b, old, lab, r);
}

}  // namespace terrace::lab
