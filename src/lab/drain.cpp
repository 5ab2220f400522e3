// SPDX-License-Identifier: MIT OR Apache-2.0
// Taking what the cores' buffers hold while their threads run, where they work by critical sections: as percpu/stop_slot.h,
// with a value of top in place of a stopped word.
//
//   1  the top of each buffer with something in it is compared-and-swapped to `draining`; what it was is kept
//   2  one membarrier: every sequence that had read top before has committed or is aborted, and its store is visible
//   3  a top that is not `draining` now was overwritten by such a commit: of an object, then it is back to step 1 for that
//      buffer; or of `refilling`, then the buffer is somebody else's (I2) and is left alone
//   4  the range [top, end) is put aside;  top = end, an empty buffer. If there is no place for it, top = what it was
//
// Who refills compares top and end with what they were before it closes the buffer, so it does not close one that was drained
// meanwhile: in step 4 top gets a value that it did not have. A transaction that has compared already has its section ended in
// step 2, and its conditional store fails. Without sequences each slot's lock is held for steps 1 and 2, and open transactions
// on it are ended.
#include "lab/heap.h"
#include "lab/mutants.h"
#include "os/membarrier.h"
#include "percpu/locked_slots.h"

namespace terrace::lab {

namespace {
constexpr std::uint64_t not_stopped = refilling;  // Buffer::drained_top of one that this drain has not stopped
}  // namespace

// Steps 1 and, by the caller, 3.
bool Heap::stop(Buffer& b) const noexcept {
  b.drained_top = not_stopped;
  std::uint64_t top = b.top.load(std::memory_order_relaxed);  // relaxed: compared below
  do {
    // What is too short to be filled stays where it is. relaxed: of another top, then the comparison fails.
    if (is_closed(top) || b.end.load(std::memory_order_relaxed) - top < min_fill_) return false;
    // [L2] acquire, pairs with the release that has opened the buffer: its end and start are seen.
  } while (!b.top.compare_exchange_weak(top, draining, std::memory_order_acquire, std::memory_order_relaxed));
  b.drained_top = top;
  return true;
}

bool Heap::stop_by_barrier(Level& l) noexcept {
  for (bool again = true; again;) {
    again = false;
    const bool in_force = is(Mutant::drains_without_barrier) || os::restart_all_sequences();
    for (unsigned i = 0; i < l.count; ++i) {
      Buffer& b = l.buffers[i];
      if (b.drained_top == not_stopped) continue;
      if (!in_force) {  // a commit may have replaced `draining`: then the buffer is its owner's
        std::uint64_t expected = draining;
        b.top.compare_exchange_strong(expected, b.drained_top, std::memory_order_release, std::memory_order_relaxed);  // [L2]
      } else if (b.top.load(std::memory_order_relaxed) != draining && !is(Mutant::drains_without_second_look)) {
        again |= stop(b);  // relaxed: the barrier has made commits visible
      }
    }
    if (!in_force) return false;
  }
  return true;
}

// False: nothing is stopped.
bool Heap::stop_all(Level& l) noexcept {
  if (slots_.has_sequences()) {
    if (!slots_.may_stop()) return false;
    bool any = false;
    for (unsigned i = 0; i < l.count; ++i) any |= stop(l.buffers[i]);
    delay(0);
    return any && stop_by_barrier(l);
  }
  bool any = false;
  for (unsigned i = 0; i < l.count; ++i) {
    percpu::LockedSlot& slot = percpu::locked_slot(i);
    const percpu::SlotLock lock(slot);
    l.buffers[i].drained_top = not_stopped;
    if (!lock.ours()) continue;                            // a signal handler that has interrupted a holder
    slot.transaction.store(0, std::memory_order_relaxed);  // relaxed: under the lock
    any |= stop(l.buffers[i]);
  }
  return any;
}

// Step 4. The buffer is closed, and this thread has closed it.
std::size_t Heap::take_stopped(Level& l, Buffer& b) noexcept {
  if (b.drained_top == not_stopped) return 0;
  const Range range{b.drained_top, b.end.load(std::memory_order_relaxed)};  // relaxed: [L2], by the acquire in stop()
  const bool taken = l.sidelined.put(range);
  // [L2] release, as at the end of install()
  b.top.store(taken ? range.end : range.start, std::memory_order_release);
  if (!taken) return 0;
  l.drained.add();
  l.drained_bytes.add(range.size());
  return range.size();
}

std::size_t Heap::drain() noexcept {
  Level& l = levels_[TERRACE_LAB_CORE];
  if (l.count == 0 || !l.restartable()) return 0;
  const os::LockGuard guard(drain_mutex_);
  if (!stop_all(l)) return 0;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < l.count; ++i) bytes += take_stopped(l, l.buffers[i]);
  return bytes;
}

}  // namespace terrace::lab
