// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/thread_slots.h"

#include "base/assert.h"
#include "os/metadata.h"

#include <pthread.h>

namespace terrace::heap {
namespace {

using level::Slot;

// `owner` of a slot: its number + 1, with this bit while a thread has it. The number stands for the slot as a home.
constexpr std::uint32_t in_use = 0x80000000;

constinit ThreadSlots* instance = nullptr;
constinit thread_local Slot* my_slot = nullptr;

}  // namespace

constinit thread_local unsigned ThreadSlots::times_closed_ = 0;

void ThreadSlots::open(Drain drain) noexcept {
  drain_ = drain;
  instance = this;
  pthread_key_t key = 0;
  has_key_ = pthread_key_create(&key, at_thread_exit) == 0;
  key_ = key;
}

Slot* ThreadSlots::add() noexcept {
  auto* const slot = os::map_metadata<Slot>(os::Metadata::levels, 1);
  if (slot == nullptr) return nullptr;
  slot->owner = ++made_;
  slot->next = all_;
  __atomic_store_n(&all_, slot, __ATOMIC_RELEASE);  // [T1]
  return slot;
}

// Its thread has ended. The lock is held, or nobody else is there.
void ThreadSlots::leave(Slot& slot) noexcept {
  TERRACE_ASSERT((slot.owner & in_use) != 0, "thread slots: one is left twice");
  slot.owner &= ~in_use;
  slot.next_free = free_;
  free_ = &slot;
}

Slot* ThreadSlots::mine() noexcept {
  if (my_slot != nullptr) return my_slot;
  if (closed() || !has_key_) return nullptr;
  {
    const os::LockGuard guard(mutex_);
    Slot* const slot = free_ != nullptr ? free_ : add();
    if (slot == nullptr) return nullptr;
    if (slot == free_) free_ = slot->next_free;
    TERRACE_ASSERT((slot->owner & in_use) == 0, "thread slots: one has two threads");
    slot->owner |= in_use;
    my_slot = slot;
  }
  // It may allocate: my_slot is set already. It may fail, when memory is short: then the slot is not kept beyond this.
  if (pthread_setspecific(key_, my_slot) != 0) give_up(*my_slot);
  return my_slot;
}

void ThreadSlots::give_up(Slot& slot) noexcept {
  drain_(slot);
  my_slot = nullptr;
  const os::LockGuard guard(mutex_);
  leave(slot);
}

void ThreadSlots::at_thread_exit(void* p) noexcept {
  instance->give_up(*static_cast<Slot*>(p));
  ++times_closed_;  // what is freed after this goes to the global level
}

void ThreadSlots::adopt_orphans() noexcept {
  for (Slot* slot = all_; slot != nullptr; slot = slot->next) {
    if (slot == my_slot || (slot->owner & in_use) == 0) continue;
    drain_(*slot);
    leave(*slot);
  }
}

}  // namespace terrace::heap
