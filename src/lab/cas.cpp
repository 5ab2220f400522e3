// SPDX-License-Identifier: MIT OR Apache-2.0
// Buffers that are shared by compare-and-swap: [HAB] Listings 1 and 2. The state of a buffer is its top: where the free part
// begins, or `refilling`.
//
//   take     top = t -> t + n                              n fits between t and end
//   refill   top = t -> refilling;  a buffer from above;  end = its end;  top = its start + n
//            nothing above:                               top = t again
//
// Why a taker can not mix an old top with a new end: end changes only while top is `refilling`, and top comes back with another
// value, since each address of the space is handed out once between two collections. So the compare-and-swap from the t that
// was read before end succeeds only if end has not changed in between.
#include "lab/heap.h"
#include "lab/mutants.h"

namespace terrace::lab {

// `seen` is the top that had no room, or `refilling`.
Range Heap::take_from(Buffer& b, const Request& r, std::uint64_t& seen) noexcept {
  // [L1] acquire, pairs with the release that ends a refill: end belongs to this top.
  std::uint64_t top = b.top.load(std::memory_order_acquire);
  for (;;) {
    seen = top;
    if (top == refilling) return {};
    const std::size_t room = b.end.load(std::memory_order_relaxed) - top;  // relaxed: [L1], and see above
    if (room > refilling / 2) {                                            // below zero: end is newer than top
      top = b.top.load(std::memory_order_acquire);                         // [L1]
      continue;
    }
    const std::size_t n = r.desired <= room ? r.desired : r.min <= room ? room : 0;
    if (n == 0) return {};
    delay(0);
    if (is(Mutant::takes_by_plain_store)) {
      b.top.store(top + n, std::memory_order_relaxed);
      return {top, top + n};
    }
    // [L1] acquire also when it fails: the new top is used with its end. Success publishes nothing: the bytes are not shared.
    if (b.top.compare_exchange_weak(top, top + n, std::memory_order_acquire, std::memory_order_acquire)) return {top, top + n};
  }
}

Range Heap::refill_by_cas(const level::Locality& here, int level, Buffer& b, std::uint64_t seen, const Request& r) noexcept {
  delay(0);
  if (is(Mutant::closes_whatever_is_there)) b.top.store(seen, std::memory_order_relaxed);
  // [L1] acquire: end, start and the counts of the last refill are seen.
  if (!b.top.compare_exchange_strong(seen, refilling, std::memory_order_acquire, std::memory_order_relaxed)) return {};
  Level& l = levels_[level];
  const Range old{seen, b.end.load(std::memory_order_relaxed)};  // relaxed: [L1]
  Request wanted = for_refill(l, b, r);
  Range lab = l.sidelined.take(wanted.min);
  if (lab.empty()) lab = take(here, level + 1, wanted);
  if (lab.empty()) {
    if (!is(Mutant::stays_closed)) b.top.store(seen, std::memory_order_release);  // [L1]
    return {};
  }
  b.counts.transactions.add();
  return install(level, b, old, lab, r);
}

// An object from the core's buffer, if it is there and has room; otherwise as everything else.
void* Heap::allocate_core_long(Thread& thread, std::size_t size) noexcept {
  Level& l = levels_[TERRACE_LAB_CORE];
  if (l.count != 0 && !l.restartable()) {
    const unsigned own = index_here(TERRACE_LAB_CORE);
    std::uint64_t seen = 0;
    if (const Range got = take_from(l.buffers[own], {size, size}, seen); !got.empty()) [[likely]] {
      if (index_here(TERRACE_LAB_CORE) != own) l.buffers[own].foreign.fetch_add(1, std::memory_order_relaxed);  // for people
      thread.active = 1;
      return pointer_to(got.start);
    }
  }
  return allocate_at(thread, TERRACE_LAB_CORE, size);
}

// The own buffer, refilled if need be, then what the others have.
Range Heap::take_by_cas(const level::Locality& here, int level, const Request& r) noexcept {
  Level& l = levels_[level];
  const unsigned own = index_at(level, here);
  for (unsigned i = 0; i < l.count; ++i) {
    Buffer& b = l.buffers[(own + i) % l.count];
    std::uint64_t seen = 0;
    Range got = take_from(b, r, seen);
    if (seen == refilling) b.busy.fetch_add(1, std::memory_order_relaxed);  // relaxed: a number for people, as the next ones
    if (got.empty() && i == 0 && seen != refilling &&
        worth_refilling(size_of(b), r, b.end.load(std::memory_order_relaxed) - seen)) {
      got = refill_by_cas(here, level, b, seen, r);
    }
    if (got.empty()) continue;
    if (i != 0) {
      b.neighbours.fetch_add(1, std::memory_order_relaxed);
    } else if (l.count > 1 && index_here(level) != own) {
      b.foreign.fetch_add(1, std::memory_order_relaxed);
    }
    return got;
  }
  return l.sidelined.cut(r, min_fill_);
}

}  // namespace terrace::lab
