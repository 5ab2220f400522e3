// SPDX-License-Identifier: MIT OR Apache-2.0
// Logs of UMEM_LOGGING, read as a debugger reads them.
#include "umem/log.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace terrace::umem {
namespace {

Event event_of(std::uint64_t object, std::uint64_t when, std::uint32_t thread = 1) {
  return {.object = pointer_to(object),
          .cache = nullptr,
          .nanoseconds = when,
          .thread = thread,
          .ahead = 0,
          .depth = 0,
          .what = Happened::allocated,
          .last_log = nullptr,
          .contents = nullptr};
}

// All entries; fails where one is not at the place that its number says.
std::vector<const LogEntry*> entries_of(const Log& log) {
  std::vector<const LogEntry*> found;
  for (std::uint32_t i = 0; i < log.chunk_count; ++i) {
    const std::byte* const begin = log.chunks + i * log.chunk_bytes;
    const auto& chunk = *reinterpret_cast<const LogChunk*>(begin);
    if (chunk.number == 0) continue;
    EXPECT_LE(chunk.used.load(), log.chunk_bytes);
    for (std::uint32_t at = sizeof(LogChunk); at < chunk.used.load();) {
      const auto* const entry = reinterpret_cast<const LogEntry*>(begin + at);
      EXPECT_EQ(entry->number, chunk.number << 32 | at);
      EXPECT_GE(entry->bytes, sizeof(LogEntry));
      found.push_back(entry);
      if (entry->bytes < sizeof(LogEntry)) break;
      at += entry->bytes;
    }
  }
  return found;
}

TEST(UmemLog, entries_are_found_with_what_lies_behind_them) {
  Log* const log = Log::open("transaction", 64 * kib, 15 * sizeof(void*));
  ASSERT_NE(log, nullptr);
  EXPECT_STREQ(log->name, "transaction");
  EXPECT_EQ(log->magic, Log::magic_number);
  const std::uint64_t frames[] = {0x10, 0x20, 0x30};
  Event event = event_of(0x1000, 5);
  event.depth = 3;
  ASSERT_NE(log->add(event, 40, frames, sizeof frames), nullptr);
  const auto all = entries_of(*log);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]->event.object, pointer_to(0x1000));
  EXPECT_EQ(all[0]->size, 40U);
  EXPECT_EQ(all[0]->saved, 0U);
  EXPECT_EQ(std::memcmp(all[0] + 1, frames, sizeof frames), 0);
}

TEST(UmemLog, saved_bytes_of_any_length_follow_each_other) {
  Log* const log = Log::open("contents", 64 * kib, 256);
  ASSERT_NE(log, nullptr);
  char text[256];
  std::memset(text, 'x', sizeof text);
  Event event = event_of(0x1000, 0);
  event.what = Happened::held;
  for (unsigned n = 1; n <= 256; ++n) {
    event.nanoseconds = n;
    log->add(event, 300, text, n);
  }
  unsigned met = 0;
  for (const LogEntry* const entry : entries_of(*log)) {
    ASSERT_EQ(entry->saved, entry->event.nanoseconds);
    ASSERT_EQ(std::memcmp(entry + 1, text, entry->saved), 0);
    ++met;
  }
  EXPECT_GT(met, 100U);
}

TEST(UmemLog, the_oldest_entries_go_first) {
  Log* const log = Log::open("fail", 1, 8);  // as small as can be
  ASSERT_NE(log, nullptr);
  constexpr unsigned added = 10'000;
  for (unsigned n = 1; n <= added; ++n) log->add(event_of(n, n), 1, nullptr, 0);
  std::map<std::uint64_t, bool> times;
  for (const LogEntry* const entry : entries_of(*log)) times[entry->event.nanoseconds] = true;
  ASSERT_FALSE(times.empty());
  EXPECT_TRUE(times.contains(added));
  EXPECT_LT(times.size(), 1000U);
  EXPECT_EQ(log->lost.load(), 0U);
}

TEST(UmemLog, an_entry_has_room_however_small_the_log_is) {
  Log* const log = Log::open("contents", 1, 100'000);
  ASSERT_NE(log, nullptr);
  const std::vector<char> bytes(100'000, 'y');
  EXPECT_NE(log->add(event_of(1, 1), 1, bytes.data(), bytes.size()), nullptr);
  EXPECT_EQ(Log::open("contents", ~std::uint64_t{0} / 2, 8), nullptr);
}

TEST(UmemLog, threads_do_not_write_over_each_other) {
  Log* const log = Log::open("transaction", 64 * kib, 16);
  ASSERT_NE(log, nullptr);
  constexpr unsigned threads = 4, each = 20'000;
  std::vector<std::thread> all;
  for (unsigned t = 1; t <= threads; ++t) {
    all.emplace_back([=] {
      for (std::uint64_t n = 1; n <= each; ++n) {
        const std::uint64_t behind[] = {t * n, t ^ n};
        log->add(event_of(n, n, t), n * t, behind, sizeof behind);
      }
    });
  }
  for (std::thread& t : all) t.join();
  const auto entries = entries_of(*log);
  EXPECT_GT(entries.size(), 100U);
  for (const LogEntry* const entry : entries) {
    const std::uint64_t n = entry->event.nanoseconds, t = entry->event.thread;
    std::uint64_t behind[2];
    std::memcpy(behind, entry + 1, sizeof behind);
    ASSERT_EQ(address_of(entry->event.object), n);
    ASSERT_EQ(entry->size, n * t);
    ASSERT_EQ(behind[0], t * n);
    ASSERT_EQ(behind[1], t ^ n);
  }
}

Log* for_handler;
std::atomic<std::uint64_t> handled;

TEST(UmemLog, a_handler_that_interrupts_a_writer_writes_elsewhere) {
  Log* const log = for_handler = Log::open("transaction", 1, 64);
  ASSERT_NE(log, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const std::uint64_t n = handled.fetch_add(1) + 1;
    for_handler->add(event_of(n, n, 2), n, nullptr, 0);
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  // As if it interrupted a writer: whichever that is, another is free.
  for (std::uint32_t i = 0; i < log->writer_count; ++i) {
    log->writers[i].busy = 1;
    raise(SIGUSR1);
    log->writers[i].busy = 0;
  }
  EXPECT_EQ(log->lost.load(), 0U);
  EXPECT_EQ(entries_of(*log).size(), log->writer_count);
  for (std::uint32_t i = 0; i < log->writer_count; ++i) log->writers[i].busy = 1;
  raise(SIGUSR1);  // none: it is counted, and nobody waits
  EXPECT_EQ(log->lost.load(), 1U);
}

TEST(UmemLog, a_child_has_the_writers_of_threads_that_it_has_not) {
  Log* const log = Log::open("transaction", 64 * kib, 64);
  ASSERT_NE(log, nullptr);
  for (std::uint64_t n = 1; n <= 100; ++n) log->add(event_of(n, n), n, nullptr, 0);
  for (std::uint32_t i = 0; i < log->writer_count; ++i) log->writers[i].busy = 1;
  const pid_t child = fork();
  if (child == 0) {
    log->after_fork_in_child();
    bool added = true;
    for (std::uint64_t n = 1; n <= 10'000; ++n) added = log->add(event_of(n, n), n, nullptr, 0) != nullptr && added;
    _exit(added && log->lost == 0 && entries_of(*log).size() > 100 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace terrace::umem
