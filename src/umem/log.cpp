// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/log.h"

#include "os/metadata.h"
#include "os/possible_cpus.h"
#include "os/rseq_area.h"
#include "os/yield.h"

#include <cstring>
#include <new>

namespace terrace::umem {
namespace {

constexpr std::uint32_t chunks_per_writer = 4;  // so that there is always one that no writer has
constexpr std::uint32_t fewest_writers = 2;     // a handler that has interrupted one finds another
constexpr std::uint64_t usual_chunk = 4096;
constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 31;  // offsets have 32 bits
constexpr unsigned rounds = 64;                                  // over all writers; so often at most is another thread let run

// As many as leave chunks of a usual size, at most one for each CPU.
std::uint32_t writers_for(std::uint64_t bytes) noexcept {
  const std::uint64_t sets = bytes / (chunks_per_writer * usual_chunk);
  return static_cast<std::uint32_t>(max_of<std::uint64_t>(min_of<std::uint64_t>(sets, os::possible_cpus()), fewest_writers));
}

}  // namespace

Log* Log::open(const char* name, std::uint64_t bytes, std::size_t most_behind) noexcept {
  const std::uint32_t writers = writers_for(bytes);
  const std::uint32_t chunks = writers * chunks_per_writer;
  const std::uint64_t least = sizeof(LogChunk) + sizeof(LogEntry) + round_up(most_behind, alignof(LogEntry));
  const std::uint64_t chunk = round_up(max_of(bytes / chunks, least), std::uint64_t{cache_line});
  const std::size_t head = sizeof(LogWriter) * writers + round_up(sizeof(Log), std::size_t{cache_line});
  if (chunk > largest_chunk) return nullptr;
  auto* const memory = os::map_metadata<std::byte>(os::Metadata::logs, head + chunks * chunk);
  if (memory == nullptr) return nullptr;
  auto* const log = new (memory) Log{};
  log->magic = magic_number;
  std::strncpy(log->name, name, sizeof log->name - 1);
  log->writer_count = writers;
  log->chunk_count = chunks;
  log->chunk_bytes = chunk;
  log->writers = reinterpret_cast<LogWriter*>(memory + round_up(sizeof(Log), std::size_t{cache_line}));
  log->chunks = memory + head;
  log->bytes = chunks * chunk;
  log->most_behind = most_behind;
  return log;
}

// [L1] acquire, pairs with the release in add(): chunk and its entries as the last one left them.
LogWriter* Log::seize() noexcept {
  const int cpu = os::current_cpu();
  const std::uint32_t first = cpu < 0 ? 0 : static_cast<std::uint32_t>(cpu);
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::uint32_t i = 0; i < writer_count; ++i) {
      LogWriter& w = writers[(first + i) % writer_count];
      if (w.busy.load(std::memory_order_relaxed) == 0 && w.busy.exchange(1, std::memory_order_acquire) == 0) return &w;
    }
    os::yield();  // somebody was interrupted while it wrote
  }
  return nullptr;
}

// That of the writer, or the next in the ring that no other one has: there are more chunks than writers.
LogChunk* Log::chunk_with_room(LogWriter& w, std::size_t room) noexcept {
  if (w.chunk != 0) {
    LogChunk& c = chunk(w.chunk - 1);
    if (c.used.load(std::memory_order_relaxed) + room <= chunk_bytes) return &c;
    w.chunk = 0;
    c.writer.store(0, std::memory_order_release);  // [L2] pairs with the exchange below: all that was written there
  }
  const auto me = static_cast<std::uint32_t>(&w - writers) + 1;
  for (std::uint32_t tries = 0; tries < 2 * chunk_count; ++tries) {
    const auto index = static_cast<std::uint32_t>(next.fetch_add(1, std::memory_order_relaxed) % chunk_count);
    LogChunk& c = chunk(index);
    std::uint32_t nobody = 0;
    if (!c.writer.compare_exchange_strong(nobody, me, std::memory_order_acquire)) continue;  // [L2]
    c.used.store(sizeof(LogChunk), std::memory_order_release);  // before the number: old entries are not taken for new ones
    c.number = begun.fetch_add(1, std::memory_order_relaxed) + 1;
    w.chunk = index + 1;
    return &c;
  }
  return nullptr;
}

const LogEntry* Log::add(const Event& event, std::uint64_t size, const void* behind, std::size_t behind_bytes) noexcept {
  const std::size_t room = sizeof(LogEntry) + round_up(behind_bytes, alignof(LogEntry));
  LogWriter* const w = seize();
  LogChunk* const c = w == nullptr ? nullptr : chunk_with_room(*w, room);
  LogEntry* entry = nullptr;
  if (c != nullptr) {
    const std::uint32_t at = c->used.load(std::memory_order_relaxed);
    entry = reinterpret_cast<LogEntry*>(reinterpret_cast<std::byte*>(c) + at);
    *entry = {.number = c->number << 32 | at,
              .bytes = static_cast<std::uint32_t>(room),
              .saved = event.what == Happened::held ? static_cast<std::uint32_t>(behind_bytes) : 0,
              .size = size,
              .event = event};
    if (behind_bytes != 0) std::memcpy(entry + 1, behind, behind_bytes);
    c->used.store(at + static_cast<std::uint32_t>(room), std::memory_order_release);  // for a debugger: the entry is whole
  } else {
    lost.fetch_add(1, std::memory_order_relaxed);
  }
  if (w != nullptr) w->busy.store(0, std::memory_order_release);  // [L1]
  return entry;
}

void Log::after_fork_in_child() noexcept {
  for (std::uint32_t i = 0; i < chunk_count; ++i) chunk(i).writer.store(0, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < writer_count; ++i) {
    LogWriter& w = writers[i];
    w.busy.store(0, std::memory_order_relaxed);
    if (w.chunk != 0) chunk(w.chunk - 1).writer.store(i + 1, std::memory_order_relaxed);
  }
}

}  // namespace terrace::umem
