// SPDX-License-Identifier: MIT OR Apache-2.0
#include "space.h"

#include "percpu/ladder.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <sched.h>
#include <sys/mman.h>

namespace lab_oracle {

namespace {

// The first word of an object or filler: size in words, whose it is, and for fillers a bit.
constexpr std::uint64_t filler = std::uint64_t{1} << 63;
constexpr std::uint64_t header(std::size_t words, std::uint32_t stamp) { return std::uint64_t{stamp} << 24 | words; }
constexpr std::size_t words_of(std::uint64_t header) { return header & 0xffffff; }
// The others.
constexpr std::uint64_t stamped(std::uint64_t header, std::size_t at) { return ~header ^ at << 32; }

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (int c = 0; c < CPU_SETSIZE; ++c) {
    if (CPU_ISSET(c, &allowed)) cpus.push_back(c);
  }
  return cpus;
}

// Begins with a region; what is mapped in front of it stays.
std::uint64_t* map(std::size_t bytes) {
  void* const p = mmap(nullptr, bytes + Space::region, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) fail("no memory", bytes);
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  return reinterpret_cast<std::uint64_t*>((at + Space::region - 1) / Space::region * Space::region);
}

}  // namespace

void fail(const char* what, std::uint64_t where) {
  std::fprintf(stderr, "  wrong: %s, at %llu\n", what, static_cast<unsigned long long>(where));
  std::fflush(stderr);
  std::_Exit(1);
}

void Space::Unmap::operator()(std::uint64_t* p) const { munmap(p, bytes); }

Space::Space(std::size_t bytes, bool keeps_sections)
    : keeps_sections_(keeps_sections),
      cpus_(allowed_cpus()),
      words_(bytes / 8),
      memory_(map(bytes), Unmap{bytes}),
      owned_(std::make_unique<std::atomic<std::uint8_t>[]>(words_)) {
  empty();
}

void Space::describe(terrace_lab_config& config) {
  config.self = this;
  config.source = source;
  config.available = available;
  config.fill = fill;
  config.young_bytes = bytes();
  config.alignment = 8;
  config.min_fill = min_fill;
  config.boundary = region;
}

void Space::move_caller(std::uint32_t turn) const {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpus_[turn % cpus_.size()], &one);
  sched_setaffinity(0, sizeof one, &one);
}

// Half of the time for longer than others need to refill the same buffer.
void Space::block_caller(std::uint32_t turn) const {
  namespace arch = terrace::arch;
  const terrace::percpu::Ladder& ladder = terrace::percpu::ladder();
  if (!has_sequences(ladder.rung)) return;
  const std::uint64_t section = arch::load_critical_section(ladder.area.critical_section);
  if (turn % 2 == 0) {
    sched_yield();
  } else {
    const timespec short_time{.tv_sec = 0, .tv_nsec = 20000};
    nanosleep(&short_time, nullptr);
  }
  arch::store_critical_section(ladder.area.critical_section, section);
}

void* Space::source(void* self, unsigned /*node*/, std::size_t min, std::size_t desired, std::size_t* actual) {
  auto& s = *static_cast<Space*>(self);
  const std::uint32_t turn = s.turn_.fetch_add(1, std::memory_order_relaxed) * 2654435761U >> 16;
  const bool above = turn % 2 == 0;
  if (turn / 2 % 8 == 0) s.move_caller(turn / 16);
  if (s.keeps_sections_ && turn / 16 % 2 == 0) s.block_caller(turn / 32);
  Ends ends = s.ends_.load(std::memory_order_relaxed);
  for (;;) {
    const Piece p = piece_of(ends, above, static_cast<std::uint32_t>(min / 8), static_cast<std::uint32_t>(desired / 8));
    if (p.count == 0) return nullptr;
    if (!s.ends_.compare_exchange_weak(ends, p.next, std::memory_order_relaxed)) continue;
    if (p.gap != 0) {
      s.gaps_.fetch_add(8 * std::uint64_t{p.gap}, std::memory_order_relaxed);
      s.make_filler(above ? p.first + p.count : p.first - p.gap, p.gap);
    }
    *actual = 8 * std::size_t{p.count};
    return s.memory_.get() + p.first;
  }
}

// As much as there is up to the next region; of that one, if it is too little. None: count is 0.
Space::Piece Space::piece_of(Ends ends, bool above, std::uint32_t min, std::uint32_t desired) {
  constexpr std::uint32_t words = region / 8;
  const std::uint32_t to_region = above ? (ends.high - 1) % words + 1 : words - ends.low % words;
  std::uint32_t room = ends.high - ends.low, gap = 0;
  if (to_region < min) gap = std::min(to_region, room);
  room -= gap;
  const std::uint32_t there = gap != 0 ? words : to_region;
  const std::uint32_t count = std::min({desired, room, there});
  if (count < min) return {0, 0, 0, ends};
  if (above) return {ends.high - gap - count, count, gap, {ends.low, ends.high - gap - count}};
  return {ends.low + gap, count, gap, {ends.low + gap + count, ends.high}};
}

std::size_t Space::available(void* self) {
  const Ends ends = static_cast<Space*>(self)->ends_.load(std::memory_order_relaxed);
  return 8 * std::size_t{ends.high - ends.low};
}

void Space::fill(void* self, void* start, void* end) {
  auto& s = *static_cast<Space*>(self);
  const std::size_t first = s.index_of(start), count = s.index_of(end) - first;
  if (s.index_of(end) <= first) fail("a tail with its end before its start", first);
  if (8 * count < min_fill) fail("a tail that is too short for a filler", first);
  s.make_filler(first, count);
}

void Space::make_filler(std::size_t first, std::size_t count) {
  own(first, count);
  memory_.get()[first] = filler | count;
}

std::size_t Space::index_of(const void* p) const {
  const auto at = reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(memory_.get());
  if (at > bytes() || at % 8 != 0) fail("an address that is not in the space", at);
  return at / 8;
}

void Space::own(std::size_t first, std::size_t count) {
  const Ends ends = ends_.load(std::memory_order_relaxed);
  const bool is_free = ends.low < ends.high && first + count > ends.low && first < ends.high;
  if (first + count > words_ || is_free) fail("words that the source still has", first);
  for (std::size_t i = first; i < first + count; ++i) {
    if (owned_[i].exchange(1, std::memory_order_relaxed) != 0) fail("a word that has an owner", i);
  }
}

void Space::take(void* object, std::size_t bytes, std::uint32_t stamp) {
  const std::size_t first = index_of(object), count = bytes / 8;
  if (first / (region / 8) != (first + count - 1) / (region / 8)) fail("an object across two regions", first);
  own(first, count);
  std::uint64_t* const words = memory_.get() + first;
  words[0] = header(count, stamp);
  for (std::size_t i = 1; i < count; ++i) words[i] = stamped(words[0], first + i);
}

// Its size in words.
std::size_t Space::check_one(std::size_t at, Sums& sums) const {
  const std::uint64_t h = memory_.get()[at];
  const std::size_t count = words_of(h);
  if ((h & filler) != 0) {
    sums.fillers += 8 * count;
    return count;
  }
  for (std::size_t i = at + 1; i < at + count && i < words_; ++i) {
    if (memory_.get()[i] != stamped(h, i)) fail("a word that is not as its owner left it", i);
  }
  sums.objects += 8 * count;
  return count;
}

void Space::check_range(std::size_t at, std::size_t end, Sums& sums) const {
  sums.handed_out += 8 * (end - at);
  for (std::size_t i = at; i < end; ++i) {
    if (owned_[i].load(std::memory_order_relaxed) == 0) fail("a word without owner", i);
  }
  while (at < end) {
    const std::size_t count = check_one(at, sums);
    if (count == 0 || count > end - at) fail("no object and no filler", at);
    at += count;
  }
}

Space::Sums Space::check() const {
  const Ends ends = ends_.load(std::memory_order_relaxed);
  Sums sums{};
  sums.gaps = gaps_.load(std::memory_order_relaxed);
  if (ends.low == ends.high) {  // an object may lie across
    check_range(0, words_, sums);
  } else {
    check_range(0, ends.low, sums);
    check_range(ends.high, words_, sums);
  }
  return sums;
}

void Space::empty() {
  for (std::size_t i = 0; i < words_; ++i) {
    owned_[i].store(0, std::memory_order_relaxed);
    memory_.get()[i] = 0;
  }
  gaps_.store(0, std::memory_order_relaxed);
  ends_.store({0, static_cast<std::uint32_t>(words_)}, std::memory_order_relaxed);
}

}  // namespace lab_oracle
