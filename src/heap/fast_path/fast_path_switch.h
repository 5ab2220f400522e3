// SPDX-License-Identifier: MIT OR Apache-2.0
// Turns the fast paths of malloc and free on and off: on when the heap is open, off while a companion lives
// (os/thread_state.h), or a vfork child whose parent can not be taken out of rseq.
#pragma once

#include "os/mutex.h"
#include "os/thread_state.h"
#include "percpu/ladder.h"
#include "span/window.h"

#include <atomic>
#include <cstdint>

namespace terrace::heap {

class FastPathSwitch {
 public:
  struct Wanted {
    const span::Window* window;
    std::byte* slots;        // slot 0
    bool sizes;              // malloc, at all
    bool sublines;           // malloc, of blocks below a cache line
    bool below_page = true;  // those that align sizes of a page and more, if malloc
  };
  /// Once, before on(): the fields that the fast paths read beside their limits.
  void publish(const Wanted& wanted, const arch::Area& area) noexcept;
  /// When the heap is open. The caller is alone.
  void on() noexcept { enable(); }
  /// Permanent: all calls take the slow path from now on. Call before the process has a second thread.
  void off() noexcept {
    is_seen_ = false;
    disable();
  }
  /// Permanent: only callers that align sizes of a page and more take the slow path. Call before the process has a second
  /// thread.
  void below_page_off() noexcept;
  /// The page map is mapped up to the window's frontier only, and the fast path of free must not look beyond.
  void follow_frontier() noexcept;

  // Around a vfork child, which runs on its parent's thread-local data and rseq area without being registered for rseq.
  // leave_vfork() takes the result of enter_vfork(); calls nest.
  struct Entered {
    std::uint64_t before;      // how often the thread was closed, and which steps enter_vfork() took
    std::uint32_t* child_tid;  // null, or for CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID: the child is a companion
  };
  Entered enter_vfork(bool heap_is_open) noexcept;
  void leave_vfork(std::uint64_t entered) noexcept;

  /// Null: there is no memory.
  os::Companion* add_companion(std::uintptr_t thread_pointer) noexcept;
  /// Called often while a companion may exist; checks from time to time, and turns the fast path on when none is left.
  void look_for_companions() noexcept;

  // fork:
  os::RankedMutex<os::Rank::switching>& mutex() noexcept { return mutex_; }
  void after_fork_in_child(bool had_companions) noexcept;

 private:
  static constexpr std::uint32_t calls_between_looks = 64;
  // The caller holds mutex_, or is alone.
  bool is_wanted() const noexcept;
  void enable() noexcept;  // if it is wanted
  static void disable() noexcept;

  os::RankedMutex<os::Rank::switching> mutex_;  // guards the limits of fast_path and the number below
  std::uint32_t vfork_children_ = 0;
  std::atomic<std::uint32_t> looks_{0};
  bool is_seen_ = false;  // the fields of fast_path, by every thread that may see a limit
  Wanted wanted_{};
};

}  // namespace terrace::heap
