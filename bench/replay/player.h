// SPDX-License-Identifier: MIT OR Apache-2.0
// One thread's steps, on the allocator that the process has. A block's first and last byte and one byte of each page between
// them are written when it is allocated; the first and last are looked at when it is released, so that an allocator which
// hands memory out twice, or loses contents in realloc, does not go unnoticed.
#pragma once

#include "../common/client.h"
#include "lanes.h"
#include "plan.h"

#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/mman.h>
#include <type_traits>

namespace bench::replay {

/// A block's first and last byte, by its place.
inline unsigned char mark_of(std::uint32_t place) { return static_cast<unsigned char>(place * 37 + 11); }

inline void touch(void* block, std::uint64_t from, std::uint64_t size, unsigned char mark) {
  if (size == 0) return;
  auto* const bytes = static_cast<volatile unsigned char*>(block);
  bytes[0] = mark;
  for (std::uint64_t i = from / page_bytes * page_bytes + page_bytes; i < size; i += page_bytes) bytes[i] = mark;
  bytes[size - 1] = mark;
}

inline void verify(const void* block, std::uint64_t size, unsigned char mark) {
  if (size == 0) return;
  const auto* const bytes = static_cast<const volatile unsigned char*>(block);
  if (bytes[0] != mark || bytes[size - 1] != mark) broken("a block lost its contents");
}

/// What all players have.
struct Stage {
  void** own_places = nullptr;
  SharedPlace* shared_places = nullptr;
  Pace* pace = nullptr;
  void (*spawn)(Stage& stage, std::uint32_t thread) = nullptr;
};

template <bool timed>
class alignas(128) Player {
 public:
  void set(Stage& stage, Progress& progress, const Step* steps, std::uint64_t count) {
    stage_ = &stage;
    progress_ = &progress;
    steps_ = steps;
    count_ = count;
  }

  void play() {
    constexpr std::uint64_t part = (1U << 20) / sizeof(Step);
    for (std::uint64_t i = 0; i < count_; i += part) {
      const std::uint64_t end = i + part < count_ ? i + part : count_;
      for (std::uint64_t k = i; k < end; ++k) play(steps_[k]);
      // What was played is not to be part of the resident memory.
      madvise(const_cast<Step*>(steps_ + i), (end - i) * sizeof(Step), MADV_DONTNEED);
    }
    stage_->pace->reach(*progress_, Pace::ended);
  }

  const Times& times() const { return times_; }

 private:
  struct Taken {
    void* block = nullptr;
    std::uint64_t size = 0;
    unsigned char mark = 0;
  };

  void play(const Step& step) {
    switch (static_cast<Do>(step.what)) {
      case Do::malloc: return put(step, made(step, [&] { return std::malloc(step.amount); }), 0);
      case Do::calloc: return put(step, zero(step, made(step, [&] { return std::calloc(1, step.amount); })), 0);
      case Do::aligned: return put(step, made(step, [&] { return aligned(step); }), 0);
      case Do::release: return release(take(step).block);
      case Do::resize_from: taken_ = take(step); return;
      case Do::resize_to: return resize(step);
      case Do::pace: stage_->pace->reach(*progress_, step.amount); return stage_->pace->await(step.amount);
      case Do::spawn: return stage_->spawn(*stage_, step.place);
    }
  }

  template <Histogram Times::*which, typename Call>
  auto measured(Call call) {
    if constexpr (!timed) {
      return call();
    } else {
      const std::uint64_t begin = ticks_now();
      if constexpr (std::is_void_v<decltype(call())>) {
        call();
        (times_.*which).add(ticks_now() - begin);
      } else {
        const auto result = call();
        (times_.*which).add(ticks_now() - begin);
        return result;
      }
    }
  }

  template <typename Call>
  void* made(const Step& step, Call call) {
    void* const block = measured<&Times::allocations>(call);
    if (block == nullptr && step.amount != 0) {
      std::fprintf(stderr, "an allocation failed\n");
      std::_Exit(1);
    }
    return block;
  }

  void release(void* block) {
    measured<&Times::releases>([block] { std::free(block); });
  }

  static void* aligned(const Step& step) {
    const std::size_t wanted = std::size_t{1} << step.alignment_log2;
    const std::size_t alignment = wanted < sizeof(void*) ? sizeof(void*) : wanted;
    void* block = nullptr;
    if (posix_memalign(&block, alignment, step.amount) != 0) return nullptr;
    if (reinterpret_cast<std::uintptr_t>(block) % alignment != 0) broken("a block is not aligned");
    return block;
  }

  static void* zero(const Step& step, void* block) {
    verify(block, step.amount, 0);
    return block;
  }

  void resize(const Step& step) {
    const Taken old = taken_;
    void* const block = made(step, [&] { return std::realloc(old.block, step.amount); });
    const std::uint64_t kept = old.size < step.amount ? old.size : step.amount;
    const auto* const bytes = static_cast<const volatile unsigned char*>(block);
    const bool lost = kept > 0 && (bytes[0] != old.mark || (kept == old.size && bytes[kept - 1] != old.mark));
    if (lost) broken("realloc lost the contents");
    put(step, block, kept);
  }

  void put(const Step& step, void* block, std::uint64_t touched) {
    touch(block, touched, step.amount, mark_of(step.place));
    if (step.shared == 0) {
      stage_->own_places[step.place] = block;
      return;
    }
    SharedPlace& place = stage_->shared_places[step.place];
    place.await(step.turn);
    place.block = block;
    place.advance(step.turn);
  }

  Taken take(const Step& step) {
    Taken taken{nullptr, step.amount, mark_of(step.place)};
    if (step.shared == 0) {
      taken.block = stage_->own_places[step.place];
    } else {
      SharedPlace& place = stage_->shared_places[step.place];
      place.await(step.turn);
      taken.block = place.block;
      place.advance(step.turn);
    }
    verify(taken.block, taken.size, taken.mark);
    return taken;
  }

  Stage* stage_ = nullptr;
  Progress* progress_ = nullptr;
  const Step* steps_ = nullptr;
  std::uint64_t count_ = 0;
  Taken taken_;
  struct NoTimes {};
  [[no_unique_address]] std::conditional_t<timed, Times, NoTimes> times_;
};

}  // namespace bench::replay
