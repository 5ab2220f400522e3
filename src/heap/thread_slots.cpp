// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/thread_slots.h"

#include "os/memory.h"

#include <pthread.h>

namespace terrace::heap {
namespace {

using level::Slot;

// `owner` of a slot: its number + 1, with this bit while a thread has it. The number stands for the slot as a home.
constexpr std::uint32_t in_use = 0x80000000;

constinit ThreadSlots* instance = nullptr;
constinit thread_local Slot* my_slot = nullptr;

}  // namespace

constinit thread_local bool ThreadSlots::is_closed_ = false;

void ThreadSlots::close() noexcept { is_closed_ = true; }
void ThreadSlots::reopen() noexcept { is_closed_ = false; }

void ThreadSlots::open(Drain drain) noexcept {
  drain_ = drain;
  instance = this;
  pthread_key_t key = 0;
  if (pthread_key_create(&key, at_thread_exit) == 0) key_ = key;
}

Slot* ThreadSlots::add() noexcept {
  auto* const slot = static_cast<Slot*>(os::map(sizeof(Slot)));
  if (slot == nullptr) return nullptr;
  slot->owner = ++made_;
  slot->next = all_;
  __atomic_store_n(&all_, slot, __ATOMIC_RELEASE);  // [T1]
  return slot;
}

Slot* ThreadSlots::mine() noexcept {
  if (my_slot != nullptr) return my_slot;
  if (is_closed_) return nullptr;
  {
    const os::LockGuard guard(mutex_);
    Slot* slot = all_;
    while (slot != nullptr && (slot->owner & in_use) != 0) slot = slot->next;
    if (slot == nullptr) slot = add();
    if (slot == nullptr) return nullptr;
    slot->owner |= in_use;
    my_slot = slot;
  }
  pthread_setspecific(key_, my_slot);  // may allocate: my_slot is set already
  return my_slot;
}

void ThreadSlots::at_thread_exit(void* p) noexcept {
  auto* const slot = static_cast<Slot*>(p);
  instance->drain_(*slot);
  my_slot = nullptr;
  is_closed_ = true;  // what is freed after this goes to the global level
  const os::LockGuard guard(instance->mutex_);
  slot->owner &= ~in_use;
}

void ThreadSlots::adopt_orphans() noexcept {
  for (Slot* slot = all_; slot != nullptr; slot = slot->next) {
    if (slot == my_slot || (slot->owner & in_use) == 0) continue;
    drain_(*slot);
    slot->owner &= ~in_use;
  }
}

}  // namespace terrace::heap
