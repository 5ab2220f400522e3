// SPDX-License-Identifier: MIT OR Apache-2.0
// What a block holds while a checked program owns it: a word that tells its length and a serial number, then bytes that follow
// from the serial number. If the allocator hands the memory out twice, or writes into it, that no longer fits together.
#pragma once

#include "random.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

inline constexpr int broken_status = 3;

[[noreturn]] inline void broken(const char* what) {
  std::fprintf(stderr, "the allocator is broken: %s\n", what);
  std::_Exit(broken_status);
}

class Pattern {
 public:
  static constexpr std::size_t smallest = sizeof(std::uint64_t);

  static void write(void* block, std::size_t size, std::uint32_t serial) {
    const std::uint64_t word = make_word(size, serial);
    std::memcpy(block, &word, sizeof word);
    auto* const bytes = static_cast<unsigned char*>(block);
    for (std::size_t i = sizeof word; i < size; i += step(size)) bytes[i] = byte(word, i);
    if (size > sizeof word) bytes[size - 1] = byte(word, size - 1);
  }

  /// The first `limit` bytes of a block that was written with its length; a shrunk block has lost its end.
  static void verify(const void* block, std::size_t limit) {
    std::uint64_t word = 0;
    std::memcpy(&word, block, sizeof word);
    const std::size_t size = size_in(word);
    if (word != make_word(size, static_cast<std::uint32_t>(word >> size_bits))) broken("a block lost its first bytes");
    const auto* const bytes = static_cast<const unsigned char*>(block);
    const std::size_t end = limit < size ? limit : size;
    for (std::size_t i = sizeof word; i < end; i += step(size)) {
      if (bytes[i] != byte(word, i)) broken("a block lost its contents");
    }
    if (size > sizeof word && limit >= size && bytes[size - 1] != byte(word, size - 1)) broken("a block lost its last byte");
  }
  static void verify(const void* block) { verify(block, SIZE_MAX); }

  /// Before it is freed: whoever else owns it, too, will notice.
  static void erase(void* block) { std::memset(block, 0xee, sizeof(std::uint64_t)); }

 private:
  static constexpr unsigned size_bits = 32;
  static constexpr std::uint32_t serial_mask = 0xffff;

  static std::size_t size_in(std::uint64_t word) { return static_cast<std::size_t>(word & 0xffff'ffffU); }
  // 32 bits of length, 16 of the serial number, 16 that depend on both.
  static std::uint64_t make_word(std::size_t size, std::uint32_t serial) {
    const std::uint64_t low = (std::uint64_t{serial & serial_mask} << size_bits) | size;
    return low | Random::mix(low) >> 48 << 48;
  }
  // Every byte of ordinary blocks; of large ones a few in every page, or the check would take all the time.
  static std::size_t step(std::size_t size) { return size <= 65536 ? 1 : 1009; }
  static unsigned char byte(std::uint64_t word, std::size_t i) { return static_cast<unsigned char>((word >> 48) + i * 29); }
};

}  // namespace bench
