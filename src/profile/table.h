// SPDX-License-Identifier: MIT OR Apache-2.0
// The table of samples. Records are of fixed size, in chunks that are mapped when they are needed and never go back. Nothing
// locks, so an interrupted thread, a signal handler and a forked child find a table that they may use.
//
// Readers look from outside, by descriptors, while others write: each record has a version, which is odd while the record is
// written.
//
// The peak. A mark is a number that rises when the sampled bytes are more than ever. The samples that were live at the newest
// mark are those that are live and were taken before it, and the ghosts: their blocks were freed since, but their records stay
// until the next mark.
#pragma once

#include "base/described.h"
#include "base/types.h"
#include "os/frames.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace terrace::profile {

inline constexpr std::uint32_t records_per_chunk = 1024;
inline constexpr std::uint32_t most_chunks = 256;
inline constexpr unsigned most_frames = 55;

enum class State : std::uint16_t { free, live, ghost };

/// All fields but the numbers of lists are the thread's that has taken the record, until it drops it: that looks at one cache
/// line.
struct Sample {
  std::uint64_t address;  // of the block; 0: there is none
  std::uint64_t size;     // asked for
  std::uint64_t weighed;  // what it was drawn by: bytes of the size class, or of a large block
  std::uint64_t period;   // mean distance when it was drawn
  std::uint64_t time;     // coarse milliseconds
  std::uint32_t born;     // the newest mark when it was taken,
  std::uint32_t died;     // and, of a ghost, when its block was freed
  std::uint32_t tid;
  std::uint32_t version;
  State state;
  std::uint16_t object_class;  // index of the class of objects; 0: of blocks
  std::uint32_t next;          // in a list; 0: the last
  std::uint32_t depth;         // 0 beside a copy of the whole stack, which has the frames in it
  std::uint32_t has_copy;
  std::uint64_t pcs[most_frames];
};
static_assert(sizeof(Sample) == 512 && offsetof(Sample, depth) == cache_line);

struct Counters {
  std::atomic<std::uint64_t> taken{0}, dropped{0}, lost{0};
};

class Table {
 public:
  /// The number of a record that the caller owns now; 0: all are in use, or memory is short.
  std::uint32_t take() noexcept;
  /// Gives a record back that was never live.
  void give(std::uint32_t n) noexcept;
  /// Makes a record live: everybody may read it.
  void publish(std::uint32_t n) noexcept;
  /// The block of a live record is free.
  void drop(std::uint32_t n) noexcept;
  /// Requires a number from take(). Between the two others see that it is being written.
  Sample& begin_writing(std::uint32_t n) noexcept;
  void end_writing(std::uint32_t n) noexcept;

  Sample& at(std::uint32_t n) noexcept {
    return chunks_[n / records_per_chunk].load(std::memory_order_relaxed)[n % records_per_chunk];
  }
  /// A whole record, or its copy of a stack with the version that the record has; false: it is being written. For readers
  /// inside, which may be interrupted anywhere.
  bool read(std::uint32_t n, Sample& out) noexcept;
  bool read_copy(std::uint32_t n, os::StackCopy& out, std::uint32_t& version) noexcept;
  /// Null: not mapped.
  const Sample* chunk(std::uint32_t i) const noexcept { return chunks_[i].load(std::memory_order_acquire); }          // [P1]
  const os::StackCopy* copies(std::uint32_t i) const noexcept { return copies_[i].load(std::memory_order_acquire); }  // [P1]

  /// Where the stack of record n is copied to. Null: memory is short.
  os::StackCopy* copy_of(std::uint32_t n) noexcept;
  std::uint32_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  std::uint32_t mark() const noexcept { return mark_.load(std::memory_order_relaxed); }

 private:
  friend struct introspect::Layout;
  bool has_chunk(std::uint32_t chunk) noexcept;
  template <class T>
  bool read_whole(std::uint32_t n, const T& from, T& out, std::uint32_t& version) noexcept;
  void push(std::atomic<std::uint64_t>& list, std::uint32_t n) noexcept;
  void note_peak(std::uint64_t live, std::uint64_t step) noexcept;

  // A list is the number of its first record, and above it how often it was changed: a number that comes back is not taken for
  // one that never left.
  std::atomic<std::uint64_t> free_{0}, ghosts_{0};
  std::atomic<std::uint32_t> used_{1};  // 0 is no record
  std::atomic<std::uint64_t> live_bytes_{0}, peak_bytes_{0};
  std::atomic<std::uint32_t> mark_{0};
  std::atomic<Sample*> chunks_[most_chunks]{};
  std::atomic<os::StackCopy*> copies_[most_chunks]{};
};

}  // namespace terrace::profile
