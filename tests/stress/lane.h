// SPDX-License-Identifier: MIT OR Apache-2.0
// A lane: a place for one running thread, its blocks and its mailbox. Threads come and go, lanes stay: a thread may leave
// blocks to its successor, or to other lanes.
#pragma once

#include "block.h"
#include "disturbances.h"

#include <atomic>
#include <pthread.h>

namespace stress {

struct Options {
  double seconds = 3;
  std::uint64_t operations = 0;  // if not 0: the end, instead of the seconds
  unsigned threads = 8;
  std::uint64_t seed = 1;
  std::size_t size_limit = 4 * 1024 * 1024;
  bool signals = false;
  long signal_interval = 200;  // microseconds
  bool forks = false;
  long fork_interval = 20;  // milliseconds
  Disturb disturb;
};

/// Blocks for somebody else. Never waits: what finds no place stays with the sender.
class Mailbox {
 public:
  bool put(const Block& b);
  bool take(Block& b);

 private:
  enum State : unsigned { empty, busy, full };
  struct Entry {
    std::atomic<unsigned> state{empty};
    Block block;
  };
  Entry entries_[64];
};

struct Lane {
  static constexpr std::size_t capacity = 2048;
  static constexpr std::size_t live_limit = 24 * 1024 * 1024;  // bytes

  Mailbox mailbox;
  std::atomic<std::uint64_t> operations{0};
  pthread_t thread{};
  std::uint64_t generation = 0;
  std::size_t count = 0;  // of blocks
  std::size_t live_bytes = 0;
  Block blocks[capacity];
};

struct World {
  Options options;
  Lane* lanes = nullptr;
  std::atomic<bool> stop{false};
  std::atomic<bool> fork_due{false};
  std::atomic<std::uint64_t> forks{0}, moves{0}, threads{0};
  int finished_pipe[2] = {-1, -1};  // a thread writes the number of its lane when it ends
};

/// One thread's life in a lane.
void live(World& world, unsigned lane);
/// Verifies and frees all blocks of a lane whose thread has ended.
void clear(Lane& lane);

}  // namespace stress
