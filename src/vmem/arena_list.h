// SPDX-License-Identifier: MIT OR Apache-2.0
// All arenas of the process: for fork, and for who looks from outside (a debugger follows `arenas.head_` and `next_`).
#pragma once

#include "vmem/arena.h"

namespace terrace::vmem {

class ArenaList {
 public:
  /// Null when there is no memory for its state. Requires valid arguments.
  Arena* create(const char* name, std::size_t quantum, std::size_t most_cached, const Source& source) noexcept;
  /// Ends the process if the arena is another one's source.
  void destroy(Arena& arena) noexcept;
  /// Calls visit(const Arena&) for each, in the order of addresses; the list is locked meanwhile.
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    const os::LockGuard guard(mutex_);
    for (const Arena* a = head_; a != nullptr; a = a->next_) visit(*a);
  }

  // For fork: all locks of arenas. After lock() one of the others follows, in the same thread; reset() in the child.
  void lock() noexcept;
  void unlock() noexcept;
  void reset_after_fork() noexcept;

 private:
  friend struct umem::Layout;
  void* take_memory() noexcept;
  const Arena* find(const vmem_t* vmp) const noexcept;

  os::RankedMutex<os::Rank::arena_list> mutex_;
  Arena* head_ = nullptr;   // in the order of addresses, in which locks of one rank are taken
  void* unused_ = nullptr;  // memory of arenas that were destroyed; each begins with the address of the next
};
extern ArenaList arenas;

inline vmem_t* public_name(Arena& arena) noexcept { return reinterpret_cast<vmem_t*>(&arena); }
inline Arena& arena_of(vmem_t* vmp) noexcept { return *reinterpret_cast<Arena*>(vmp); }

}  // namespace terrace::vmem
