// SPDX-License-Identifier: MIT OR Apache-2.0
#include "vmem/arena_list.h"

#include "base/report.h"
#include "os/metadata.h"

#include <cstring>
#include <new>

namespace terrace::vmem {

constinit ArenaList arenas;

void* ArenaList::take_memory() noexcept {
  void* const memory = unused_;
  if (memory == nullptr) return os::map_metadata<Arena>(os::Metadata::arenas, 1);
  std::memcpy(&unused_, memory, sizeof unused_);
  return memory;
}

// Null if it is no arena: a source may be anything that its functions understand.
const Arena* ArenaList::find(const vmem_t* vmp) const noexcept {
  const Arena* a = head_;
  while (a != nullptr && reinterpret_cast<const vmem_t*>(a) != vmp) a = a->next_;
  return a;
}

Arena* ArenaList::create(const char* name, std::size_t quantum, std::size_t most_cached, const Source& source) noexcept {
  const os::LockGuard guard(mutex_);
  void* const memory = take_memory();
  if (memory == nullptr) return nullptr;
  Source known = source;
  if (const Arena* const a = find(source.arena)) known.quantum = a->quantum();
  auto* const arena = new (memory) Arena(name, quantum, most_cached, known);
  Arena** link = &head_;
  while (*link != nullptr && *link < arena) link = &(*link)->next_;
  arena->next_ = *link;
  *link = arena;
  return arena;
}

void ArenaList::destroy(Arena& arena) noexcept {
  arena.empty_caches();
  if (const std::uint64_t bytes = arena.statistics().in_use; bytes != 0) {
    warn_of_leaked_pieces("vmem_destroy", arena.name(), bytes);
  }
  const os::LockGuard guard(mutex_);
  for (const Arena* a = head_; a != nullptr; a = a->next_) {
    if (a->source() == public_name(arena)) report_arena_in_use("vmem_destroy", arena.name(), a->name());
  }
  Arena** link = &head_;
  while (*link != &arena) link = &(*link)->next_;
  *link = arena.next_;
  arena.close();
  arena.~Arena();
  std::memcpy(static_cast<void*>(&arena), &unused_, sizeof unused_);
  unused_ = &arena;
}

void ArenaList::lock() noexcept {
  const os::LockOrder::TakesAll all;
  mutex_.lock();
  for (Arena* a = head_; a != nullptr; a = a->next_) a->mutex().lock();
  segment_pool.mutex().lock();
}

void ArenaList::unlock() noexcept {
  segment_pool.mutex().unlock();
  for (Arena* a = head_; a != nullptr; a = a->next_) a->mutex().unlock();
  mutex_.unlock();
}

void ArenaList::reset_after_fork() noexcept {
  segment_pool.mutex().reset_after_fork();
  for (Arena* a = head_; a != nullptr; a = a->next_) a->reset_after_fork();
  mutex_.reset_after_fork();
}

}  // namespace terrace::vmem
