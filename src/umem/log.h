// SPDX-License-Identifier: MIT OR Apache-2.0
// UMEM_LOGGING: rings of the last events in all caches. A debugger finds them in a process or core file by the exported
// pointers below and these structs alone.
//
//   Log          one mapping: header, writers, chunks
//   LogWriter    the right to write to a chunk. A thread chooses one by its CPU's number; one thread at a time has it
//   LogChunk     entries one behind the other, from the end of LogChunk up to `used`. The oldest one that no writer has is
//                used again when a writer's own is full
//   LogEntry     an event, then `depth` return addresses; or the bytes that an object held, `saved` of them
//
// All entries: for each chunk with number != 0, from offset sizeof(LogChunk), by LogEntry::bytes, while the offset is below
// `used`; sorted by event.nanoseconds. An entry that somebody points to may have been overwritten: it is there if its number
// says its place, `chunk's number << 32 | its offset in the chunk`.
#pragma once

#include "umem/cache.h"
#include "umem/options.h"

#include <atomic>

namespace terrace::umem {

struct LogEntry;

enum class Happened : std::uint8_t { nothing, allocated, freed, failed, slab_made, held };

/// An event: kind, object, time and thread. Return addresses follow, innermost first.
struct Event {
  const void* object;         // failed: null; slab_made: the slab's first byte
  const Cache* cache;         // null: memory by size beyond the largest cache, or aligned
  std::uint64_t nanoseconds;  // CLOCK_MONOTONIC
  std::uint32_t thread;       // its number
  std::uint16_t ahead;        // malloc's block begins so many times ahead_unit behind `object`; 0: none, or too far
  std::uint8_t depth;         // how many return addresses
  Happened what;
  const LogEntry* last_log;  // in a Record: the entry of this event; in an entry: of the event before, of the same object
  const LogEntry* contents;  // freed: what the object held, if that is logged
};

inline constexpr std::size_t ahead_unit = 8;

struct LogEntry {
  std::uint64_t number;
  std::uint32_t bytes;  // of the entry, a multiple of 8
  std::uint32_t saved;  // held: bytes of the object that follow
  std::uint64_t size;   // of the object; failed: what was asked for; slab_made: of the slab
  Event event;
};

struct LogChunk {
  std::uint64_t number;               // 0: never used; rises by 1 with each chunk begun
  std::atomic<std::uint32_t> used;    // bytes, with this header
  std::atomic<std::uint32_t> writer;  // who has it, + 1; 0: nobody
};

struct alignas(cache_line) LogWriter {
  std::atomic<std::uint32_t> busy;  // 1: somebody writes
  std::uint32_t chunk;              // its index + 1; 0: none yet
};

class Log {
 public:
  static constexpr std::uint64_t magic_number = 0x31474f4c4d454d55;  // "UMEMLOG1"

  std::uint64_t magic;
  char name[16];  // as UMEM_LOGGING has it
  std::uint32_t writer_count;
  std::uint32_t chunk_count;
  std::uint64_t chunk_bytes;
  std::byte* chunks;  // chunk i is at chunks + i * chunk_bytes
  LogWriter* writers;
  std::uint64_t bytes;               // of all chunks
  std::atomic<std::uint64_t> begun;  // chunks so far
  std::atomic<std::uint64_t> next;   // where to look for the next chunk, modulo chunk_count
  std::atomic<std::uint64_t> lost;   // entries for which no writer was free
  std::uint64_t most_behind;         // bytes behind an entry

  /// A log of about `bytes`, in which an entry with `most_behind` bytes behind it has room. Null: no memory.
  static Log* open(const char* name, std::uint64_t bytes, std::size_t most_behind) noexcept;

  /// Null: lost, since after some tries no writer was free. May be called in a handler that has interrupted it, with any lock
  /// held.
  const LogEntry* add(const Event& event, std::uint64_t size, const void* behind, std::size_t behind_bytes) noexcept;
  /// In a forked child: drops entries that other threads of the parent were writing.
  void after_fork_in_child() noexcept;

 private:
  LogChunk& chunk(std::uint32_t index) const noexcept { return *reinterpret_cast<LogChunk*>(chunks + index * chunk_bytes); }
  LogWriter* seize() noexcept;
  LogChunk* chunk_with_room(LogWriter& w, std::size_t room) noexcept;
};

// Where the debugger's tool expects the fields.
static_assert(sizeof(Event) == 48 && sizeof(LogEntry) == 72 && sizeof(LogChunk) == 16 && sizeof(LogWriter) == 64);
static_assert(offsetof(Log, writer_count) == 24 && offsetof(Log, chunk_bytes) == 32 && offsetof(Log, chunks) == 40);

}  // namespace terrace::umem

extern "C" {
/// Null: not asked for.
extern terrace::umem::Log *umem_transaction_log, *umem_content_log, *umem_failure_log, *umem_slab_log;
}

namespace terrace::umem {

/// As UMEM_LOGGING and UMEM_DEBUG say, which have been read. Says which of them can not be.
void open_logs(Complain complain) noexcept;
bool any_log() noexcept;
void logs_after_fork_in_child() noexcept;

/// Logs a refused request of `size` bytes. Keeps errno.
void log_failure(const Cache* cache, std::uint64_t size) noexcept;
/// If the calling thread has just made a slab for the cache.
void log_slab(const Cache& cache) noexcept;

}  // namespace terrace::umem
