// SPDX-License-Identifier: MIT OR Apache-2.0
// A young space with an oracle: between two collections each word is handed out by the source once and belongs to one object
// or one filler; at a collection all that was handed out must be covered by them, and every word must be as its owner left it.
//
// Fillers have at least two words, objects lie in one region; the source leaves a filler where a piece would lie across. The
// source gives pieces from both ends, so that buffers have neighbours and addresses do not only grow: an engine that mixes
// the end of one buffer with the top of another must not get away with it. And it moves its caller to another cpu now and then:
// that is in the middle of a refill. It can also behave as a system call does on kernels that leave rseq_cs alone in calls:
// it blocks, others have the slot, and afterwards the caller's section reads as if nothing had happened.
#pragma once

#include "terrace/lab.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace lab_oracle {

/// Says what is wrong and ends the process.
[[noreturn]] void fail(const char* what, std::uint64_t where);

class Space {
 public:
  explicit Space(std::size_t bytes, bool keeps_sections = false);
  std::size_t bytes() const { return 8 * words_; }
  static constexpr std::size_t min_fill = 16, region = std::size_t{64} << 10;
  /// Sets self, source, available and fill.
  void describe(terrace_lab_config& config);

  /// The caller has got an object; `stamp` is written into all of it, behind a word with its size.
  void take(void* object, std::size_t bytes, std::uint32_t stamp);
  /// A range that the engine has not asked for; nothing when there is none.
  void* get_elsewhere(std::size_t min, std::size_t desired, std::size_t* actual) {
    return source(this, 0, min, desired, actual);
  }
  /// While the world is stopped and nothing is in a buffer.
  struct Sums {
    std::uint64_t handed_out, objects, fillers;
    std::uint64_t gaps;  // fillers by the source itself
  };
  Sums check() const;
  void empty();
  /// The cpus that the process may use at first.
  const std::vector<int>& cpus() const { return cpus_; }

 private:
  // Free are the words in [low, high).
  struct Ends {
    std::uint32_t low, high;
  };
  // What the source would do: words of a piece, the first of them, and words of a gap that become a filler.
  struct Piece {
    std::uint32_t first, count, gap;
    Ends next;
  };
  static Piece piece_of(Ends ends, bool above, std::uint32_t min, std::uint32_t desired);
  static void* source(void* self, unsigned node, std::size_t min, std::size_t desired, std::size_t* actual);
  static std::size_t available(void* self);
  static void fill(void* self, void* start, void* end);

  void move_caller(std::uint32_t turn) const;
  void block_caller(std::uint32_t turn) const;
  std::size_t index_of(const void* p) const;
  void own(std::size_t first, std::size_t count);
  void make_filler(std::size_t first, std::size_t count);
  void check_range(std::size_t at, std::size_t end, Sums& sums) const;
  std::size_t check_one(std::size_t at, Sums& sums) const;

  struct Unmap {
    std::size_t bytes;
    void operator()(std::uint64_t* p) const;
  };
  bool keeps_sections_;
  std::vector<int> cpus_;
  std::size_t words_;
  std::unique_ptr<std::uint64_t, Unmap> memory_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> owned_;
  std::atomic<Ends> ends_;
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<std::uint64_t> gaps_{0};
};

}  // namespace lab_oracle
