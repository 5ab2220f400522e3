// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/fast_path/fast_path_switch.h"

#include "arch/cpu.h"
#include "base/bits.h"
#include "heap/fast_path/fast_path.h"
#include "level/closed.h"
#include "os/membarrier.h"
#include "os/memory.h"
#include "os/rseq_area.h"
#include "os/threads.h"

namespace terrace::heap {

constinit FastPath fast_path;

// [H2] The fast paths load a limit and then, if it is not 0, the fields written here, with nothing but the branch in between. A
// thread that was started by one that has been through Heap::ready(), or has been there itself, sees the fields anyway. Any
// other saw limits of 0 until now. Where loads stay in order that is enough. Elsewhere the processor may load a field first,
// before it was written, and a limit that was published after; so, once, before any limit is published, a barrier interrupts
// every running thread: what a thread loads after its interruption sees the fields, what it loaded before saw limits of 0. If
// the barrier is not to be had, the limits stay 0.
void FastPathSwitch::publish(const Wanted& wanted, const arch::Area& area) noexcept {
  wanted_ = wanted;
  fast_path.base = wanted.window->base();
  fast_path.slots = wanted.slots;
  fast_path.area = area;
  is_seen_ = arch::loads_stay_in_order || os::single_threaded() || os::restart_all_sequences();
}

bool FastPathSwitch::is_wanted() const noexcept {
  return is_seen_ && vfork_children_ == 0 && os::companions.load(std::memory_order_relaxed) == 0;  // relaxed: under mutex_
}

void FastPathSwitch::enable() noexcept {
  if (!is_wanted()) return;
  // [H2] release: on x86-64 an order for the compiler only; elsewhere one more reason.
  if (wanted_.sizes) {
    __atomic_store_n(&fast_path.size_limit, SizeRule::largest, __ATOMIC_RELEASE);
    if (wanted_.below_page) __atomic_store_n(&fast_path.below_page_limit, os::smallest_page - 1, __ATOMIC_RELEASE);
  }
  if (wanted_.sublines) __atomic_store_n(&fast_path.subline_limit, subline_classes * SizeRule::quantum, __ATOMIC_RELEASE);
  __atomic_store_n(&fast_path.extent_16ths, wanted_.window->extent() / 16, __ATOMIC_RELEASE);
}

void FastPathSwitch::disable() noexcept {
  __atomic_store_n(&fast_path.subline_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fast_path.below_page_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fast_path.size_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
  __atomic_store_n(&fast_path.extent_16ths, std::uintptr_t{0}, __ATOMIC_SEQ_CST);
}

void FastPathSwitch::below_page_off() noexcept {
  wanted_.below_page = false;
  __atomic_store_n(&fast_path.below_page_limit, std::size_t{0}, __ATOMIC_SEQ_CST);
}

void FastPathSwitch::follow_frontier() noexcept {
  if (os::companions.load(std::memory_order_relaxed) != 0) look_for_companions();  // relaxed: see os::thread_state()
  if (!is_seen_) return;
  const std::uintptr_t extent_16ths = wanted_.window->extent() / 16;
  if (__atomic_load_n(&fast_path.extent_16ths, __ATOMIC_RELAXED) == extent_16ths) return;
  if (!mutex_.try_lock()) return;                                                              // next time
  if (is_wanted()) __atomic_store_n(&fast_path.extent_16ths, extent_16ths, __ATOMIC_RELEASE);  // [H2]
  mutex_.unlock();
}

// The child of vfork runs on its parent's thread pointer, but the kernel does not keep that rseq area up to date for it: its
// sequences would not be aborted, its slot may be somebody else's by now. So the parent, which waits meanwhile, takes itself
// out of rseq: the kernel writes -1 into the area, and both take the cold way, where the thread's state is closed to the slots.
// All other threads stay on the fast path. Where the kernel refuses (a sandbox), or there is no other thread, the fast path is
// switched off for the process instead.
//
// Children nest: a child that calls vfork is the parent of another, on the same thread-local data, and one that is killed while
// it waits never comes back. So each call remembers how often the thread was closed before it, in a register (vfork.S), and
// goes back to that number, whatever those within have left; and it undoes what it has done itself. In an area that says -1
// there is nothing left to do for those within. A thread that was closed for another reason (its exit) stays so.
namespace {

constexpr unsigned way_bits = 2;
enum Way : unsigned { nothing_done, unregistered, switched_off };

bool has_sequences() noexcept { return percpu::has_sequences(percpu::ladder().rung); }
const arch::Area& area() noexcept { return percpu::ladder().area; }
std::ptrdiff_t area_offset() noexcept { return area().critical_section - os::rseq_critical_section; }

}  // namespace

FastPathSwitch::Entered FastPathSwitch::enter_vfork(bool heap_is_open) noexcept {
  const unsigned times = level::Closed::times();
  const std::uint64_t before = std::uint64_t{times} << way_bits;
  if (!heap_is_open) return {before, nullptr};
  // Beside companions the parent's state is not to be borrowed, but the child gets one of its own. The fast path is off anyway.
  if (os::on_listed_thread_pointer()) {
    if (os::Companion* const c = add_companion(arch::thread_pointer())) return {before, &c->tid};
  }
  level::Closed::set_times(times + 1);
  if (!has_sequences() || !arch::registered(area()) || os::thread_state().companion) return {before | nothing_done, nullptr};
  if (!os::single_threaded() && os::may_restart_sequences() && os::unregister_rseq(area_offset()))
    return {before | unregistered, nullptr};
  const os::LockGuard guard(mutex_);
  ++vfork_children_;
  disable();
  return {before | switched_off, nullptr};
}

void FastPathSwitch::leave_vfork(std::uint64_t entered) noexcept {
  const auto before = static_cast<unsigned>(entered >> way_bits), way = static_cast<unsigned>(entered & ((1U << way_bits) - 1));
  const unsigned within = level::Closed::times() - before;
  if (within == 0) return;
  if (way == unregistered) os::register_rseq(area_offset());  // if that fails, the thread stays one that is not registered
  if (way == switched_off) {
    const os::LockGuard guard(mutex_);
    vfork_children_ -= within;
    enable();
  }
  level::Closed::set_times(before);
}

// The entry stays until the kernel says that the companion is gone: also where the thread ends before, whose memory becomes
// another thread's.
os::Companion* FastPathSwitch::add_companion(std::uintptr_t thread_pointer) noexcept {
  const os::LockGuard guard(mutex_);
  os::remove_gone_companions();  // their entries are used again
  os::Companion* const c = os::add_companion(thread_pointer);
  if (c != nullptr) disable();  // [C3]
  return c;
}

void FastPathSwitch::look_for_companions() noexcept {
  // relaxed: any number of calls will do.
  if (looks_.fetch_add(1, std::memory_order_relaxed) % calls_between_looks != 0 || os::Mutex::holds_all()) return;
  if (!mutex_.try_lock()) return;  // next time
  if (os::remove_gone_companions()) enable();
  mutex_.unlock();
}

// Children of vfork and companions are the parent's. But if this process was forked by one of them, its thread has the rseq
// area of a thread that the kernel does not know here. It is registered then; where that is refused, the thread stays closed,
// and the fast path with it.
void FastPathSwitch::after_fork_in_child(bool had_companions) noexcept {
  const unsigned closed = level::Closed::times();
  if (!has_sequences() || (closed == 0 && vfork_children_ == 0 && !had_companions)) return;
  if (closed != 0 || had_companions) level::Closed::set_times(os::register_rseq(area_offset()) ? 0 : max_of(closed, 1U));
  vfork_children_ = arch::registered(area()) ? level::Closed::times() : 0;
  is_wanted() ? enable() : disable();
}

}  // namespace terrace::heap
