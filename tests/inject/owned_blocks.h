// SPDX-License-Identifier: MIT OR Apache-2.0
// What the sequences under delay work on: slots, and blocks that know whether a thread has them.
#pragma once

#include "arch/chain.h"
#include "arch/sequences.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace terrace::under_delay {

constexpr int slot_shift = 13;
constexpr std::size_t slot_size = 1 << slot_shift;
constexpr int other_offset = 512, popped_offset = 1536;
// Words of which each of the first slots has one of its own: that of slot 0 is the last, those of the others lie before it.
constexpr unsigned own_words = 192, slots_with_own = own_words, own_of_slot_0 = own_words - 1;
constexpr std::size_t own_stride = slot_size - sizeof(Word);
constexpr int own_offset = 2048, own_popped_offset = 4096;
constexpr unsigned max_slots = 1024;
constexpr std::size_t block_count = 400;

struct alignas(64) Block {
  std::uint64_t words[2];      // what the sequences use
  std::atomic<int> owners{0};  // 1: in a thread's hands
};

alignas(slot_size) inline std::byte memory[max_slots * slot_size];
inline std::byte* slots = memory;
inline Block blocks[block_count];
inline arch::Area area;
inline std::atomic<bool> stop{false};

[[noreturn]] inline void fail(const char* what) {
  std::fprintf(stderr, "    %s\n", what);
  std::_Exit(1);
}

inline Word& word_at(unsigned slot, int offset) {
  return *reinterpret_cast<Word*>(memory + slot * slot_size + static_cast<std::size_t>(offset));
}

inline Block& checked(void* p) {
  const auto at = reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(blocks);
  if (at >= sizeof blocks || at % sizeof(Block) != 0) fail("a pointer that is no block");
  return *static_cast<Block*>(p);
}
inline void acquired(Block& b) {
  if (b.owners.exchange(1) != 0) fail("a block was handed out twice");
}
inline void released(Block& b) {
  if (b.owners.exchange(0) != 1) fail("a block was free while it was owned");
}

struct Rng {
  std::uint64_t x;
  std::uint32_t next() {
    x = x * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(x >> 33);
  }
};

}  // namespace terrace::under_delay
