// SPDX-License-Identifier: MIT OR Apache-2.0
// Reads a trace, checks all that can be checked, and gives the calls of all threads in their one order.
#pragma once

#include "trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace terrace::trace {

/// The file is no trace, or not as a recorder leaves it; the text says where.
class Damaged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Trace {
 public:
  explicit Trace(const std::string& path);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  const FileHeader& header() const { return *reinterpret_cast<const FileHeader*>(bytes_); }
  std::string command() const;
  std::uint32_t threads() const { return static_cast<std::uint32_t>(chunks_.size()); }
  /// Of a thread, in order. A thread may have none: it ended before its first event was in the file.
  const std::vector<const ChunkHeader*>& chunks(std::uint32_t thread) const { return chunks_[thread]; }
  std::uint64_t offset(const void* of) const {
    return static_cast<std::uint64_t>(static_cast<const unsigned char*>(of) - bytes_);
  }
  std::size_t size() const { return size_; }

 private:
  void find_chunks();

  const unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::vector<const ChunkHeader*>> chunks_;
};

/// The events of one thread.
class ThreadEvents {
 public:
  ThreadEvents(const Trace& trace, std::uint32_t thread) : trace_(&trace), chunks_(&trace.chunks(thread)) {}
  std::optional<Event> next();

 private:
  bool open_chunk();

  const Trace* trace_;
  const std::vector<const ChunkHeader*>* chunks_;
  std::size_t next_chunk_ = 0;
  Decoder decoder_{nullptr, nullptr};
  Before before_;
  std::uint64_t free_sequence_ = 0;  // the least that the next event can have
};

/// All threads' events by sequence number. realloc comes twice: first what it releases, later what it allocates.
class Merge {
 public:
  struct Step {
    Event event;
    std::uint32_t thread = 0;
    bool releases = false;
    bool allocates = false;
  };

  explicit Merge(const Trace& trace);
  std::optional<Step> next();

 private:
  struct Head {
    std::uint64_t sequence;
    std::uint32_t thread;
    bool operator>(const Head& other) const { return sequence > other.sequence; }
  };

  void advance(std::uint32_t thread);

  std::vector<ThreadEvents> threads_;
  std::vector<Event> current_;
  std::vector<bool> half_;  // a realloc whose first half was given
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;
  std::uint64_t free_sequence_ = 0;
};

struct Object {
  std::uint64_t id = 0;  // 0, 1, ... in the order of allocation
  std::uint64_t size = 0;
  std::uint64_t born = 0;  // the number of the call that allocated it
  std::uint32_t thread = 0;
};

struct Call {
  Kind kind = Kind::free;
  std::uint32_t thread = 0;
  std::uint8_t alignment_log2 = 0;
  std::uint64_t sequence = 0;    // of realloc the end
  std::optional<Object> old;     // realloc, free
  std::optional<Object> object;  // all but free
};

/// The calls with objects instead of addresses. Blocks that are released without having been allocated in the trace (before a
/// fork, say) are left out, and one whose release is missing is freed when its address is allocated again.
class Calls {
 public:
  explicit Calls(const Trace& trace) : merge_(trace), reallocated_(trace.threads()) {}
  std::optional<Call> next();

  std::uint64_t number() const { return number_; }
  std::uint64_t unknown() const { return unknown_; }
  std::uint64_t missed() const { return missed_; }
  const std::unordered_map<std::uint64_t, Object>& live() const { return live_; }

 private:
  std::optional<Object> take(std::uint64_t address);
  std::optional<Call> step(const Merge::Step& step);
  Call allocate(const Merge::Step& step);

  Merge merge_;
  std::optional<Merge::Step> waiting_;  // for its address to become free
  std::vector<std::optional<Object>> reallocated_;
  std::unordered_map<std::uint64_t, Object> live_;
  std::uint64_t objects_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t unknown_ = 0;
  std::uint64_t missed_ = 0;
};

}  // namespace terrace::trace
