// SPDX-License-Identifier: MIT OR Apache-2.0
// A trace made ready for replay: for each thread a list of steps in which every block has a place in a table, so that the
// replay itself needs no memory and no look-ups. A file made on this machine for this program: no format for keeping.
//
// Places: a block that one thread allocates and releases has a place of that thread's, without any order to keep. The others'
// places are shared: `turn` counts what has happened to such a place, and a step waits for the turn it has in the trace.
// Both kinds are used again, so that the tables are as long as most blocks lived at one time, not as many as there were.
//
// Pace: threads run at different speeds here than there, and blocks must not pile up because of that. No thread may be more
// than `window` of the trace's sequence numbers ahead of the slowest. There is always a thread that may go on: the one with
// the lowest number has nothing to wait for, because everything with a lower one was done. For that, a thread's last pace may
// be at most window / 4 behind its own next step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench::replay {

inline constexpr char plan_magic[8] = {'T', 'r', 'a', 'c', 'e', 'P', 'l', '1'};
inline constexpr std::uint64_t window = 1 << 11;
inline constexpr std::size_t page_bytes = 4096;

enum class Do : std::uint8_t {
  malloc,
  calloc,
  aligned,
  release,
  resize_from,  // takes the block out of its place
  resize_to,    // of the block taken last; puts it into a place, maybe another one
  pace,         // `amount`: the sequence number of what follows
  spawn,        // `place`: the thread to start
};

struct Step {
  std::uint32_t place = 0;
  std::uint32_t turn = 0;  // shared places only
  std::uint64_t amount : 48 = 0;
  std::uint64_t alignment_log2 : 8 = 0;
  std::uint64_t what : 7 = 0;  // Do
  std::uint64_t shared : 1 = 0;
};
static_assert(sizeof(Step) == 16);

struct PlanThread {
  std::uint64_t steps_offset = 0;  // in the file, a multiple of page_bytes
  std::uint64_t steps = 0;
  std::uint64_t first_sequence = 0;
};

/// A block that the trace does not release.
struct Leftover {
  std::uint64_t size = 0;
  std::uint32_t place = 0;
  std::uint32_t shared = 0;
};

struct PlanHeader {
  char magic[8] = {};
  std::uint64_t operations = 0;
  std::uint64_t threads = 0;
  std::uint64_t own_places = 0;
  std::uint64_t shared_places = 0;
  std::uint64_t leftovers = 0;
  std::uint64_t leftovers_offset = 0;
  // PlanThread[threads] follow.
};

/// Writes the plan of a trace to an open, empty file. Throws terrace::trace::Damaged.
void compile(const std::string& trace, int file);

/// The table of own places has a cache line between those of any two threads.
inline constexpr std::uint64_t places_per_line = 8;

}  // namespace bench::replay
