// SPDX-License-Identifier: MIT OR Apache-2.0
// What 64 slots hold when each was busy in turn and nothing is live: resident memory, as the system sees it. The topology and
// the cpu number come from here (the linker's --wrap). Run with TERRACE_RUNG=getcpu.
#include "described_machine.h"
#include "heap/heap.h"
#include "terrace/malloc.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>
#include <vector>

namespace {

constexpr unsigned cpus = 64;
constexpr std::size_t most_per_slot = 256 * terrace::kib;
using machine::here;

}  // namespace

void machine::describe(terrace::topology::Topology& out) noexcept {
  out.cpu_count = cpus;
  out.llc_count = 4;
  for (unsigned c = 0; c < cpus; ++c) out.llc[c] = static_cast<std::uint8_t>(c / 16);
}

namespace terrace::heap {
namespace {

std::size_t resident() {
  std::size_t total = 0, pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu %zu", &total, &pages) != 2) ADD_FAILURE() << "no /proc/self/statm";
  if (file != nullptr) std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Some thousand blocks of all sizes, a few hundred at a time, each of them written.
void work_on(unsigned cpu) {
  here = static_cast<int>(cpu);
  std::mt19937 random(cpu);
  std::vector<void*> blocks(300, nullptr);
  for (int i = 0; i < 5000; ++i) {
    void*& p = blocks[random() % blocks.size()];
    terrace_free(p);
    const std::size_t size = std::size_t{16} << random() % 9;
    p = terrace_malloc(size);
    std::memset(p, 1, size);
  }
  for (void* p : blocks) terrace_free(p);
}

TEST(BusySlots, hold_little_each_when_nothing_is_live) {
  if (heap.ready() && heap.core().rung() != percpu::Rung::getcpu) GTEST_SKIP() << "not as it is to be run";
  work_on(0);
  terrace_malloc_trim(0);
  const std::size_t before = resident();
  for (unsigned cpu = 0; cpu < cpus; ++cpu) work_on(cpu);
  const std::size_t held = resident() - before;
  RecordProperty("kib_per_slot", static_cast<int>(held / cpus / kib));
  std::printf("%zu KiB resident for each slot\n", held / cpus / kib);
  EXPECT_LE(held / cpus, most_per_slot);
  EXPECT_STREQ(heap.check_invariants(), nullptr);
}

}  // namespace
}  // namespace terrace::heap
