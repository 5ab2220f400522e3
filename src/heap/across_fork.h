// SPDX-License-Identifier: MIT OR Apache-2.0
// The heap across fork: everything is locked, then unlocked in the parent, made usable in the child.
#pragma once

namespace terrace::heap {

class Heap;

class AcrossFork {
 public:
  constexpr explicit AcrossFork(Heap& heap) noexcept : heap_(heap) {}

  /// Locks of layers above. They precede all of the heap's and are taken, released and reset with them.
  struct UpperLocks {
    void (*lock)() noexcept;
    void (*unlock)() noexcept;
    void (*reset)() noexcept;     // in a child, where they were taken
    void (*in_child)() noexcept;  // in any child, with nothing locked
  };
  void set_upper_locks(const UpperLocks& locks) noexcept { upper_locks_ = &locks; }

  /// With libc's list of open files: libc unlocks it in a child of its own fork().
  void before(bool with_open_files) noexcept;
  void in_parent() noexcept;
  void in_child() noexcept;

 private:
  void lock_all() noexcept;
  void unlock_all() noexcept;
  void reset_locks_in_child() noexcept;
  void repair_in_child() noexcept;

  Heap& heap_;
  const UpperLocks* upper_locks_ = nullptr;
};

}  // namespace terrace::heap
