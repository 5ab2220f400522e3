// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads that do nothing but compute and allocate: [HAB] section V, where javac does, and [MP-RCS] 6.2, where SPECjbb does.
//
// bench_lab_busy KEY=VALUE...      see options.h; besides
//   ms=200   milliseconds
//   work=N   steps of computing, of a nanosecond or less each, per object
// prints objects and bytes per second, and requests: how often the lowest level above the thread's buffers was asked.
#include "options.h"

#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace lab_bench;
using Clock = std::chrono::steady_clock;

struct alignas(128) Sum {
  std::uint64_t objects = 0, bytes = 0, past_thread = 0;
};

struct Run {
  Young young;
  std::size_t work;
  std::atomic<unsigned> ready{0};
  Word begun{0}, counted{0};
  std::atomic<bool> ended{false};
};

void wait_for(const Word& word) {
  while (word.load() == 0) futex_wait(word, 0);
}

void body(Run& run, std::uint32_t number, Sum& out) {
  Sizes sizes(number);
  Young::Mutator mutator(run.young);
  Sum sum;
  {
    const Young::Blocked blocked(run.young);
    run.ready.fetch_add(1);
    wait_for(run.begun);
  }
  std::uint64_t state = number;
  do {  // once at least: a thread may get no processor before the time is over
    const std::size_t bytes = sizes.next();
    void* const p = mutator.allocate(bytes);
    std::memset(static_cast<char*>(p) + sizeof(Header), 0, bytes - sizeof(Header));
    for (std::size_t i = 0; i < run.work; ++i) {
      state += i;
      __asm__ volatile("" : "+r"(state));
    }
    ++sum.objects;
    sum.bytes += bytes;
  } while (!run.ended.load(std::memory_order_relaxed));
  sum.past_thread = mutator.past_thread();
  out = sum;
  const Young::Blocked blocked(run.young);
  run.ready.fetch_sub(1);
  wait_for(run.counted);  // leaving gives up the buffer
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  Run run{Young(options.young(std::size_t{512} << 20), options.config()), options.number("work", 0)};
  const auto threads = static_cast<unsigned>(options.number("threads", 2 * std::thread::hardware_concurrency()));
  std::vector<Sum> sums(threads);
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) all.emplace_back([&run, &sums, i] { body(run, i, sums[i]); });
  while (run.ready.load() != threads) std::this_thread::yield();

  const auto begin = Clock::now();
  run.begun.store(1);
  futex_wake(run.begun, INT_MAX);
  std::this_thread::sleep_for(std::chrono::milliseconds(options.number("ms", 200)));
  run.ended.store(true);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  while (run.ready.load() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));

  Sum sum;
  for (const Sum& s : sums) {
    sum.objects += s.objects;
    sum.bytes += s.bytes;
    sum.past_thread += s.past_thread;
  }
  terrace_lab_counters counters;
  terrace_lab_read_counters(run.young.heap(), &counters);
  Line line;
  line.add("objects_per_second", static_cast<double>(sum.objects) / seconds);
  line.add("bytes_per_second", static_cast<double>(sum.bytes) / seconds);
  line.add("objects", static_cast<double>(sum.objects));
  line.add("bytes", static_cast<double>(sum.bytes));
  line.add("requests", static_cast<double>(sum.past_thread + counters.level[TERRACE_LAB_THREAD].labs));
  line.add(run.young).end();
  run.counted.store(1);
  futex_wake(run.counted, INT_MAX);
  for (std::thread& t : all) t.join();
}
