// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/slabs/magazines.h"

#include "os/metadata.h"

#include <cstring>
#include <new>

namespace terrace::heap {

using level::Magazine;

Magazine Magazines::take_kept(const level::Locality& here, unsigned kind) noexcept {
  return depots_->take(here, level::key_of_empties(kind)).magazine;
}

Magazine Magazines::take(const level::Locality& here, unsigned rounds) noexcept {
  const unsigned kind = hardened ? guarded_kind : level::magazine_kind_for(rounds);
  if (const Magazine kept = take_kept(here, kind)) return kept;
  void* const memory = take_memory(kind, here.node);
  if (memory == nullptr) return {};
  bytes_.add(level::magazine_bytes(kind));
  return Magazine::make(memory, kind);
}

Magazine Magazines::moved(const level::Locality& here, Magazine m, Magazine larger) noexcept {
  if (!larger) return m;
  larger.set_limit(m.count());
  std::memcpy(larger.begin(), m.begin(), m.count() * sizeof(std::uint64_t));
  larger.add(m.count());
  m.clear();
  give(here, m);
  return larger;
}

void Magazines::give(const level::Locality& here, Magazine m) noexcept {
  TERRACE_ASSERT(m.count() == 0, "a magazine that holds blocks is given away as an empty one");
  if (m && !depots_->put(here, level::key_of_empties(m.kind()), m)) release(m);
}

void Magazines::release(Magazine m) noexcept {
  if (!m) return;
  bytes_.sub(level::magazine_bytes(m.kind()));
  give_memory(m.kind(), m.memory());
}

void* Magazines::take_memory([[maybe_unused]] unsigned kind, [[maybe_unused]] unsigned node) noexcept {
  return hardened ? take_guarded() : slabs_->cut_one(home_of_magazines(kind), true, node);
}

void Magazines::give_memory([[maybe_unused]] unsigned kind, void* memory) noexcept {
  if constexpr (hardened) {
    const os::LockGuard guard(mutex_);
    guarded_ = new (memory) Free{guarded_};
  } else {
    slabs_->put_back_one(home_of_magazines(kind), memory);
  }
}

void* Magazines::take_guarded() noexcept {
  constexpr std::size_t chunk = 64 * kib;
  const os::LockGuard guard(mutex_);
  if (guarded_ == nullptr) {
    auto* const memory = static_cast<std::byte*>(os::map_metadata(os::Metadata::levels, chunk));
    if (memory == nullptr) return nullptr;
    for (std::size_t at = 0; at < chunk; at += level::magazine_bytes(guarded_kind)) guarded_ = new (memory + at) Free{guarded_};
  }
  Free* const first = guarded_;
  guarded_ = first->next;
  return first;
}

}  // namespace terrace::heap
