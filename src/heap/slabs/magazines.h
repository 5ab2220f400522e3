// SPDX-License-Identifier: MIT OR Apache-2.0
// Source of empty magazines: the depots' stacks of empty ones, then slabs of magazines.
#pragma once

#include "base/described.h"
#include "base/hardened.h"
#include "heap/slabs/slabs.h"
#include "level/depot.h"
#include "level/magazine.h"
#include "os/mutex.h"

namespace terrace::heap {

class Magazines {
 public:
  void open(level::Depots& depots, Slabs& slabs, const span::Window& window) noexcept {
    depots_ = &depots;
    slabs_ = &slabs;
    window_ = &window;
  }
  /// What a slot's word names, which the caller has taken, or whose slot nobody else works on.
  level::Magazine of_word(Word w) const noexcept {
    TERRACE_ASSERT(!names_something(w) || hardened || kind_at(w) < level::magazine_kinds, "I1: a word names no magazine");
    return level::Magazine::of_word(w, hardened ? guarded_kind : kind_at(w));
  }
  /// As of_word(), of a word that somebody else changes meanwhile.
  unsigned count_at(Word w) const noexcept {
    return is_named(w) ? level::Magazine::of_word(w, hardened ? guarded_kind : kind_at(w)).count() : 0;
  }
  /// False: the word names no memory of magazines.
  bool is_named(Word w) const noexcept { return names_something(w) && (hardened || kind_at(w) < level::magazine_kinds); }
  /// An empty magazine for `rounds`, or the largest kind; none when memory is short.
  level::Magazine take(const level::Locality& here, unsigned rounds) noexcept;
  /// One that may hold so many rounds, with those of `m` in it: the same if that suffices, and if memory is short. Of none,
  /// none.
  TERRACE_INLINE level::Magazine enlarged(const level::Locality& here, level::Magazine m, unsigned rounds) noexcept {
    if (!m) return m;
    if (m.kind() < level::magazine_kind_for(rounds)) m = moved(here, m, take(here, rounds));
    m.set_limit(min_of(rounds, level::magazine_capacity(m.kind())));
    return m;
  }
  /// Requires count() == 0; of `none` nothing.
  void give(const level::Locality& here, level::Magazine m) noexcept;
  /// As give(), without keeping it at hand.
  void release(level::Magazine m) noexcept;
  /// Of all magazines that are not in slabs.
  std::uint64_t bytes() const noexcept { return bytes_.read(); }

  // fork, hardened build:
  os::RankedMutex<os::Rank::slabs>& mutex() noexcept { return mutex_; }

 private:
  friend struct introspect::Layout;
  // Slabs of magazines say of which kind; what lies between guards is of one kind.
  static constexpr unsigned guarded_kind = level::magazine_kinds - 1;
  unsigned kind_at(Word w) const noexcept {
    const std::byte* const top = level::origin() + w - sizeof(std::uint64_t);
    return window_->contains(top) ? window_->owners_byte(window_->index_of(top)) - static_cast<unsigned>(magazine_values.first)
                                  : ~0U;
  }
  // Not inlined, so that their stack frames do not add up.
  __attribute__((noinline)) level::Magazine take_kept(const level::Locality& here, unsigned kind) noexcept;
  __attribute__((noinline)) level::Magazine moved(const level::Locality& here, level::Magazine m,
                                                  level::Magazine larger) noexcept;
  void* take_memory(unsigned kind, unsigned node) noexcept;
  void give_memory(unsigned kind, void* memory) noexcept;
  void* take_guarded() noexcept;

  level::Depots* depots_ = nullptr;
  Slabs* slabs_ = nullptr;
  const span::Window* window_ = nullptr;
  SharedCounter bytes_;
  // Hardened build: an overflow of a block must not reach a pointer that will be handed out. So magazines lie between guard
  // pages, apart from all slabs. They are few, and are never given back.
  struct Free {
    Free* next;
  };
  os::RankedMutex<os::Rank::slabs> mutex_;
  Free* guarded_ = nullptr;
};

}  // namespace terrace::heap
