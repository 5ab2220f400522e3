// SPDX-License-Identifier: MIT OR Apache-2.0
// Sizes and lifetimes come in powers of two: the entry with "up_to" N is of those above N / 2. The lifetime of a block is the
// number of calls, by any thread, from its allocation to its release.
#include "tell.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <vector>

namespace terrace::trace {

namespace {

constexpr std::size_t powers = 65;
using ByPower = std::array<std::uint64_t, powers>;

std::size_t power(std::uint64_t n) { return n <= 1 ? 0 : static_cast<std::size_t>(std::bit_width(n - 1)); }

struct Summary {
  std::array<std::uint64_t, 6> kinds{};  // by Kind
  std::vector<std::uint64_t> by_thread;
  ByPower blocks{};
  ByPower bytes{};
  ByPower lifetimes{};
  std::uint64_t from_other_threads = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t live_blocks = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t peak_blocks = 0;

  void release(const Call& call, std::uint64_t now) {
    live_bytes -= call.old->size;
    --live_blocks;
    ++lifetimes[power(now - call.old->born)];
    if (call.old->thread != call.thread) ++from_other_threads;
  }
  void allocate(const Object& object) {
    live_bytes += object.size;
    ++live_blocks;
    ++blocks[power(object.size)];
    bytes[power(object.size)] += object.size;
    peak_bytes = std::max(peak_bytes, live_bytes);
    peak_blocks = std::max(peak_blocks, live_blocks);
  }
  void add(const Call& call, std::uint64_t now) {
    ++kinds[static_cast<std::size_t>(call.kind)];
    ++by_thread[call.thread];
    if (call.old) release(call, now);
    if (call.object) allocate(*call.object);
  }
};

void print_number(const char* key, std::uint64_t value) {
  std::printf(" \"%s\": %llu,\n", key, static_cast<unsigned long long>(value));
}

void print_powers(const char* key, const ByPower& counts, const ByPower* bytes) {
  std::printf(" \"%s\": [", key);
  const char* between = "";
  for (std::size_t i = 0; i < powers; ++i) {
    if (counts[i] == 0) continue;
    std::printf("%s{\"up_to\": %llu, \"count\": %llu", between, i < 64 ? 1ULL << i : ~0ULL,
                static_cast<unsigned long long>(counts[i]));
    if (bytes != nullptr) std::printf(", \"bytes\": %llu", static_cast<unsigned long long>((*bytes)[i]));
    std::printf("}");
    between = ", ";
  }
  std::printf("],\n");
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    result += plain ? c : '?';
  }
  return result + '"';
}

void print(const Trace& trace, const Summary& summary, const Calls& calls) {
  static constexpr std::array<const char*, 6> names = {"", "malloc", "calloc", "aligned", "realloc", "free"};
  std::printf("{\n \"command\": %s,\n", quoted(trace.command()).c_str());
  print_number("process", trace.header().process);
  print_number("parent", trace.header().parent);
  print_number("incomplete", trace.header().incomplete);
  print_number("file_bytes", trace.size());
  print_number("calls", calls.number());
  for (std::size_t i = 1; i < names.size(); ++i) print_number(names[i], summary.kinds[i]);
  print_number("from_other_threads", summary.from_other_threads);
  print_number("unknown", calls.unknown());
  print_number("missed", calls.missed());
  print_number("peak_bytes", summary.peak_bytes);
  print_number("peak_blocks", summary.peak_blocks);
  print_number("end_bytes", summary.live_bytes);
  print_number("end_blocks", summary.live_blocks);
  print_powers("sizes", summary.blocks, &summary.bytes);
  print_powers("lifetimes", summary.lifetimes, nullptr);
  std::printf(" \"threads\": [");
  for (std::size_t i = 0; i < summary.by_thread.size(); ++i)
    std::printf("%s%llu", i > 0 ? ", " : "", static_cast<unsigned long long>(summary.by_thread[i]));
  std::printf("]\n}\n");
}

}  // namespace

void tell_summary(const Trace& trace) {
  Calls calls(trace);
  Summary summary;
  summary.by_thread.resize(trace.threads());
  while (const std::optional<Call> call = calls.next()) summary.add(*call, calls.number() - 1);
  print(trace, summary, calls);
}

}  // namespace terrace::trace
