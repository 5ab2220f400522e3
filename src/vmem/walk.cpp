// SPDX-License-Identifier: MIT OR Apache-2.0
// vmem_walk(). A walk that unlocks the arena while the program's function runs says where it goes on, and Arena::unlink() moves
// that place when its segment goes. So what is there all the time is visited once, whatever others do meanwhile.
#include "arch/cpu.h"
#include "vmem/arena.h"

namespace terrace::vmem {

using Kind = Segment::Kind;

bool Arena::is_visited(const Segment& s, int types) const noexcept {
  switch (s.kind) {
    case Kind::span: return (types & VMEM_SPAN) != 0;
    case Kind::free: return (types & VMEM_FREE) != 0;
    case Kind::allocated:
    case Kind::cached: return (types & VMEM_ALLOC) != 0;
    case Kind::unused: break;
  }
  return false;
}

void Arena::walk(int types, void (*visit)(void*, void*, std::size_t), void* argument) noexcept {
  const bool unlocked = (static_cast<unsigned>(types) & VMEM_REENTRANT) != 0;
  mutex_.lock();
  Walker self{.at = segments_.anchor().after, .next = walkers_, .thread = arch::thread_pointer()};
  walkers_ = &self;
  while (self.at != &segments_.anchor()) {
    const Segment& s = *self.at;
    self.at = s.after;
    if (!is_visited(s, types)) continue;
    const std::uintptr_t start = s.start;
    const std::size_t size = s.kind == Kind::allocated ? s.asked : s.size;
    if (unlocked) mutex_.unlock();
    visit(argument, pointer_to(start), size);
    if (unlocked) mutex_.lock();
  }
  Walker** link = &walkers_;
  while (*link != &self) link = &(*link)->next;
  *link = self.next;
  const std::uintptr_t rotor = rotor_address_;
  if (!unlocked && (types & VMEM_ROTOR) != 0) visit(argument, pointer_to(rotor), 0);
  mutex_.unlock();
  if (unlocked && (types & VMEM_ROTOR) != 0) visit(argument, pointer_to(rotor), 0);
}

void Arena::reset_after_fork() noexcept {
  mutex_.reset_after_fork();
  const std::uintptr_t self = arch::thread_pointer();
  for (Walker** link = &walkers_; *link != nullptr;) {
    if ((*link)->thread == self) {
      link = &(*link)->next;
    } else {
      *link = (*link)->next;
    }
  }
}

}  // namespace terrace::vmem
