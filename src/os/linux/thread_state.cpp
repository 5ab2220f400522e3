// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/thread_state.h"

#include "arch/cpu.h"
#include "os/io.h"
#include "os/metadata.h"
#include "os/mutex.h"
#include "os/syscall.h"

#include <cerrno>

namespace terrace::os {
namespace {

constexpr std::uint32_t starting = ~0U;  // a tid that nobody has

constinit std::atomic<Companion*> all{nullptr};

std::uint32_t own_tid() noexcept { return static_cast<std::uint32_t>(thread_id()); }

Companion* on(std::uintptr_t thread_pointer) noexcept {
  for (Companion* c = all.load(std::memory_order_relaxed); c != nullptr; c = c->next) {
    if (c->thread_pointer.load(std::memory_order_relaxed) == thread_pointer) return c;
  }
  return nullptr;
}

// The kernel writes it meanwhile.
std::uint32_t tid_of(const Companion& c) noexcept { return __atomic_load_n(&c.tid, __ATOMIC_ACQUIRE); }

bool is_gone(const Companion& c) noexcept {
  const int probed = c.probed.load(std::memory_order_relaxed);  // relaxed: a number
  return tid_of(c) == 0 || (probed != 0 && arch::raw_syscall(SYS_tkill, probed, 0) == -ESRCH);
}

Companion* unused() noexcept {
  if (Companion* const c = on(0)) return c;
  auto* const fresh = map_metadata<Companion>(Metadata::levels, 1);
  if (fresh == nullptr) return nullptr;
  fresh->next = all.load(std::memory_order_relaxed);
  all.store(fresh, std::memory_order_release);  // [C4] pairs with the acquire in state_beside_companions()
  return fresh;
}

}  // namespace

constinit thread_local ThreadState state_of_thread;
constinit std::atomic<std::uint32_t> companions{0};

ThreadState& state_beside_companions() noexcept {
  const std::uintptr_t here = arch::thread_pointer();
  std::uint32_t me = 0;
  for (Companion* c = all.load(std::memory_order_acquire); c != nullptr; c = c->next) {  // [C4]
    if (c->thread_pointer.load(std::memory_order_acquire) != here) continue;  // [C5] pairs with the release in add_companion()
    if (me == 0) me = own_tid();
    if (tid_of(*c) == me) return c->state;
  }
  return state_of_thread;
}

Companion* add_companion(std::uintptr_t thread_pointer) noexcept {
  Companion* const c = unused();
  if (c == nullptr) return nullptr;
  __atomic_store_n(&c->tid, starting, __ATOMIC_RELAXED);  // relaxed: published by the thread pointer
  c->probed.store(0, std::memory_order_relaxed);
  c->state = {.companion = true, .closed = 1};
  companions.fetch_add(1, std::memory_order_relaxed);                  // relaxed: see thread_state()
  c->thread_pointer.store(thread_pointer, std::memory_order_release);  // [C5]
  return c;
}

bool on_listed_thread_pointer() noexcept {
  return companions.load(std::memory_order_relaxed) != 0 &&
         on(arch::thread_pointer()) != nullptr;  // relaxed: see thread_state()
}
void become(Companion& c) noexcept { __atomic_store_n(&c.tid, own_tid(), __ATOMIC_RELEASE); }  // as the kernel does
void end_companion(std::uint32_t* tid) noexcept { __atomic_store_n(tid, 0, __ATOMIC_RELEASE); }
void probe(Companion& c, int tid) noexcept { c.probed.store(tid, std::memory_order_relaxed); }  // relaxed: a number

bool remove_gone_companions() noexcept {
  for (Companion* c = all.load(std::memory_order_relaxed); c != nullptr; c = c->next) {
    if (c->thread_pointer.load(std::memory_order_relaxed) == 0 || !is_gone(*c)) continue;
    c->thread_pointer.store(0, std::memory_order_relaxed);  // relaxed: who still finds it finds it gone
    companions.fetch_sub(1, std::memory_order_relaxed);
  }
  return companions.load(std::memory_order_relaxed) == 0;
}

bool forget_companions() noexcept {
  if (companions.load(std::memory_order_relaxed) == 0) return false;
  for (Companion* c = all.load(std::memory_order_relaxed); c != nullptr; c = c->next)
    c->thread_pointer.store(0, std::memory_order_relaxed);
  companions.store(0, std::memory_order_relaxed);
  const ThreadState* const forker = Mutex::holder_of_all();
  if (forker != nullptr && forker->companion) {
    state_of_thread = *forker;
    state_of_thread.companion = false;
    state_of_thread.closed = forker->closed - 1;
    state_of_thread.identity = forker;
    Mutex::set_holds_all(true);
  }
  return true;
}

}  // namespace terrace::os
