// SPDX-License-Identifier: MIT OR Apache-2.0
// How one thread of a measured program uses malloc: it counts, touches every block, and, by its type, times every call or
// checks every block. Both cost nothing where they are not asked for.
#pragma once

#include "histogram.h"
#include "pattern.h"
#include "ticks.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace bench {

struct Times {
  Histogram allocations;
  Histogram releases;

  void add(const Times& other) {
    allocations.add(other.allocations);
    releases.add(other.releases);
  }
};

template <bool timed, bool checked>
class alignas(128) Client {
 public:
  static constexpr bool checks = checked;

  // Blocks whose contents are nobody's but the client's. At least 8 bytes.
  void* get(std::size_t size) { return touched(take(size), size); }
  void* get_zeroed(std::size_t count, std::size_t each);
  void* get_aligned(std::size_t alignment, std::size_t size);  // posix_memalign
  /// aligned_alloc; `size` is a multiple of `alignment`.
  void* get_aligned_multiple(std::size_t alignment, std::size_t size);
  void* resize(void* block, std::size_t size);
  void put(void* block) {
    if constexpr (checked) {
      Pattern::verify(block);
      Pattern::erase(block);
    }
    give(block);
  }
  /// What is left in a table at its end.
  template <typename Table>
  void put_all(const Table& table) {
    for (void* const block : table) {
      if (block != nullptr) put(block);
    }
  }

  // Blocks into which the program writes what it likes.
  void* take(std::size_t size) {
    return allocated([size] { return std::malloc(size); });
  }
  void give(void* block) {
    released([block] { std::free(block); });
  }
  void* take_new(std::size_t size) {
    return allocated([size] { return ::operator new(size); });
  }
  void give_new(void* block, std::size_t size) {
    released([block, size] { ::operator delete(block, size); });
  }

  std::uint64_t taken() const { return taken_; }
  std::uint64_t given() const { return given_; }
  std::uint64_t calls() const { return taken_ + given_ + resized_; }
  const Times& times() const { return times_; }

 private:
  template <typename Call>
  static auto measured(Histogram& times, Call call) {
    const std::uint64_t begin = ticks_now();
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      times.add(ticks_now() - begin);
    } else {
      const auto result = call();
      times.add(ticks_now() - begin);
      return result;
    }
  }
  template <typename Call>
  void* allocated(Call call) {
    ++taken_;
    return present(timed_if_asked(call));
  }
  template <typename Call>
  void* timed_if_asked(Call call) {
    if constexpr (timed) {
      return measured(times_.allocations, call);
    } else {
      return call();
    }
  }
  template <typename Call>
  void released(Call call) {
    ++given_;
    if constexpr (timed) {
      measured(times_.releases, call);
    } else {
      call();
    }
  }

  static void* present(void* block) {
    if (block == nullptr) {
      std::perror("an allocation failed");
      std::_Exit(1);
    }
    return block;
  }

  void* touched(void* block, std::size_t size) {
    if constexpr (checked) {
      if (reinterpret_cast<std::uintptr_t>(block) % (size < 16 ? 8 : 16) != 0) broken("a block is not aligned");
      Pattern::write(block, size, next_serial());
    } else {
      auto* const bytes = static_cast<volatile char*>(block);
      bytes[0] = 1;
      bytes[size - 1] = 1;
    }
    return block;
  }

  std::uint32_t next_serial() {
    return static_cast<std::uint32_t>(Random::mix(taken_ + resized_ + reinterpret_cast<std::uintptr_t>(this)));
  }

  std::uint64_t taken_ = 0;
  std::uint64_t given_ = 0;
  std::uint64_t resized_ = 0;
  struct NoTimes {};
  [[no_unique_address]] std::conditional_t<timed, Times, NoTimes> times_;
};

template <bool timed, bool checked>
void* Client<timed, checked>::get_zeroed(std::size_t count, std::size_t each) {
  void* const block = allocated([=] { return std::calloc(count, each); });
  if constexpr (checked) {
    for (std::size_t i = 0; i < count * each; ++i) {
      if (static_cast<const char*>(block)[i] != 0) broken("memory of calloc is not zero");
    }
  }
  return touched(block, count * each);
}

template <bool timed, bool checked>
void* Client<timed, checked>::get_aligned(std::size_t alignment, std::size_t size) {
  void* const block = allocated([=]() -> void* {
    void* p = nullptr;
    return posix_memalign(&p, alignment, size) == 0 ? p : nullptr;
  });
  if (checked && reinterpret_cast<std::uintptr_t>(block) % alignment != 0) broken("a block of posix_memalign is not aligned");
  return touched(block, size);
}

template <bool timed, bool checked>
void* Client<timed, checked>::get_aligned_multiple(std::size_t alignment, std::size_t size) {
  void* const block = allocated([=] { return std::aligned_alloc(alignment, size); });
  if (checked && reinterpret_cast<std::uintptr_t>(block) % alignment != 0) broken("a block of aligned_alloc is not aligned");
  return touched(block, size);
}

template <bool timed, bool checked>
void* Client<timed, checked>::resize(void* block, std::size_t size) {
  ++resized_;
  if constexpr (checked) Pattern::verify(block);
  void* const moved = present(timed_if_asked([=] { return std::realloc(block, size); }));
  if constexpr (checked) Pattern::verify(moved, size);
  return touched(moved, size);
}

}  // namespace bench
