// SPDX-License-Identifier: MIT OR Apache-2.0
// Magazines (Bonwick): an array of pointers to free blocks of one home class that move together. The pointers lie outside of
// the blocks: malloc and free do not touch a block, a write after free breaks no list, and constructed objects stay intact.
//
//   place   0      1     2 ... 1 + count    2 + count ... 1 + limit     2 + limit
//           limit  0     rounds             not 0, and nobody's         0
//
// The zeros are sentinels: a pop compares the pointer that it loads, a push checks the place that it writes; neither needs a
// count. A slot's word is the distance from `origin()` to the place behind the top round. Around the origin lie zeros, so that
// the words `empty_word` (as slots are mapped) and `stopped_word` are an empty magazine to malloc and a full one to free.
//
// Invariants
//   M1  places are as above, and count <= limit <= capacity(kind)
//   M2  a magazine is in one word, in one depot's stack, or owned by one thread
#pragma once

#include "arch/word.h"
#include "base/assert.h"
#include "base/described.h"

#include <cstddef>
#include <cstdint>

namespace terrace::level {

inline constexpr unsigned magazine_kinds = 3;  // 128, 512 and 2,048 bytes: each lies at a multiple of its size
constexpr std::size_t magazine_bytes(unsigned kind) noexcept { return std::size_t{128} << 2 * kind; }
/// Rounds that fit.
constexpr unsigned magazine_capacity(unsigned kind) noexcept {
  return static_cast<unsigned>(magazine_bytes(kind) / sizeof(std::uint64_t)) - 3;
}
inline constexpr unsigned largest_magazine = magazine_capacity(magazine_kinds - 1);
constexpr unsigned magazine_kind_for(unsigned rounds) noexcept {
  unsigned kind = 0;
  while (kind + 1 < magazine_kinds && magazine_capacity(kind) < rounds) ++kind;
  return kind;
}

/// The origin is place 8 of the zeros: the words 0 and `stopped` name places from 7 to 40. Behind them lies the table by which
/// malloc finds a size's class: one address for both costs the fast path an instruction less. heap/classes/size_class.cpp
/// defines it.
struct AroundOrigin {
  std::uint64_t zeros[64];
  std::uint8_t behind[16384];
};
extern const AroundOrigin around_origin __attribute__((visibility("hidden")));
inline constexpr std::size_t origin_place = 8;
inline constexpr std::size_t from_origin_behind = offsetof(AroundOrigin, behind) - origin_place * sizeof(std::uint64_t);
inline std::byte* origin() noexcept {
  return const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&around_origin.zeros[origin_place]));
}

/// The top round of the magazine that a word names; 0: none. A hint if another thread may own the magazine.
inline std::uint64_t top_round(Word w) noexcept {
  std::uint64_t round;
  const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(origin()) + w - sizeof round;  // of `stopped`: at no multiple of 8
  __builtin_memcpy(&round, reinterpret_cast<const void*>(at), sizeof round);  // NOLINT(performance-no-int-to-ptr): any object's
  return round;
}

/// A magazine outside of slots, owned by a thread or in a depot, as one word: address << 16 | kind << 8 | rounds.
class Magazine {
 public:
  constexpr Magazine() noexcept = default;
  /// The content of a slot's word.
  static Magazine of_word(Word w, unsigned kind) noexcept {
    if (!names_something(w)) return {};
    const auto behind_top = reinterpret_cast<std::uintptr_t>(origin() + w);
    const std::uintptr_t base = behind_top & ~(magazine_bytes(kind) - 1);
    return Magazine(base, kind, static_cast<unsigned>((behind_top - base) / sizeof(std::uint64_t)) - first);
  }
  /// Of memory of that kind, whatever it holds.
  static Magazine make(void* memory, unsigned kind) noexcept {
    Magazine m(reinterpret_cast<std::uintptr_t>(memory), kind, 0);
    m.places()[0] = m.places()[1] = m.places()[first] = 0;
    return m;
  }
  friend constexpr bool operator==(Magazine, Magazine) noexcept = default;

  constexpr explicit operator bool() const noexcept { return bits_ != 0; }
  constexpr unsigned count() const noexcept { return static_cast<unsigned>(bits_ & 0xff); }
  constexpr unsigned kind() const noexcept { return static_cast<unsigned>(bits_ >> 8 & 0xff); }
  void* memory() const noexcept { return places(); }
  Word word() const noexcept { return static_cast<Word>(reinterpret_cast<std::byte*>(places() + first + count()) - origin()); }

  // By the owner:
  unsigned limit() const noexcept { return static_cast<unsigned>(places()[0]); }
  /// Sets the rounds that it may hold; at least those that it holds.
  void set_limit(unsigned limit) noexcept {
    if (limit < count()) limit = count();
    TERRACE_ASSERT(limit <= magazine_capacity(kind()), "M1: a magazine is to hold more than it can");
    for (unsigned i = this->limit(); i < limit; ++i) places()[first + i] = nobodys;
    places()[first + limit] = 0;
    places()[0] = limit;
  }
  bool has_room() const noexcept { return count() < limit(); }
  /// Requires has_room().
  void push(void* block) noexcept {
    places()[first + count()] = reinterpret_cast<std::uintptr_t>(block);
    ++bits_;
  }
  /// Requires count() != 0.
  void* pop() noexcept {
    --bits_;
    return reinterpret_cast<void*>(places()[first + count()]);  // NOLINT(performance-no-int-to-ptr): a round is a pointer
  }
  /// `n` more rounds were written to end().
  void add(unsigned n) noexcept { bits_ += n; }
  /// The lowest `n`, of at least as many.
  void keep(unsigned n) noexcept { bits_ = (bits_ & ~std::uint64_t{0xff}) | n; }
  void clear() noexcept { keep(0); }
  std::uint64_t* begin() const noexcept { return places() + first; }
  std::uint64_t* end() const noexcept { return begin() + count(); }

 private:
  friend struct introspect::Layout;
  static constexpr unsigned first = 2;
  static constexpr std::uint64_t nobodys = 1;
  Magazine(std::uintptr_t base, unsigned kind, unsigned count) noexcept
      : bits_(static_cast<std::uint64_t>(base) << 16 | kind << 8 | count) {}
  std::uint64_t* places() const noexcept {
    return reinterpret_cast<std::uint64_t*>(bits_ >> 16);  // NOLINT(performance-no-int-to-ptr): what the word is for
  }

  std::uint64_t bits_ = 0;
};
static_assert(largest_magazine <= 0xff);

}  // namespace terrace::level
