// SPDX-License-Identifier: MIT OR Apache-2.0
// THREADS threads, each of which allocates and frees a mixed working set of 50 objects and then sleeps: what memory do they
// hold beyond live objects and stacks? One line of JSON.
//
// sleepers threads=1000 settled=0
//   grown_bytes   resident memory of the process, without the threads' stacks (which the program maps itself), after the last
//                 thread has gone to sleep minus before the first was started
//   live_bytes    growth of the blocks in use, as mallinfo2 has it: libc keeps a vector alive for each thread. (mallinfo2 of
//                 glibc counts cached blocks as in use; other allocators' are as good as they are.)
//   seconds, cpu_seconds, faults, operations   from the first thread's start to the last one's sleep
//   settled_rss   with settled=1: everything that is resident a second later, without the stacks
#include "../common/line.h"
#include "../common/options.h"
#include "../common/phase.h"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr int objects = 50;
constexpr std::size_t smallest = 16;
constexpr std::size_t largest = 4096;

std::atomic<long> asleep{0};

void* body(void* number) {
  auto state = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(number) * 2654435761U);
  void* set[objects];
  for (void*& p : set) {
    state = state * 1664525U + 1013904223U;
    const std::size_t size = smallest + (state >> 8) % (largest - smallest);
    p = std::malloc(size);
    if (p == nullptr) std::abort();
    std::memset(p, 1, size);
  }
  for (void* p : set) std::free(p);
  asleep.fetch_add(1);
  for (;;) pause();
}

// Resident bytes of all mappings outside [from, to). Without malloc: stdio brings a buffer of its own, which is given one here.
long resident_outside(std::uintptr_t from, std::uintptr_t to) {
  static char buffer[1 << 16];
  std::FILE* const f = std::fopen("/proc/self/smaps", "r");
  if (f == nullptr) std::abort();
  std::setvbuf(f, buffer, _IOFBF, sizeof buffer);
  char line[512];
  long sum = 0;
  bool counts = true;
  while (std::fgets(line, sizeof line, f) != nullptr) {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;
    long kib = 0;
    char permission = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c", &low, &high, &permission) == 3) {
      counts = low < from || low >= to;
    } else if (counts && std::sscanf(line, "Rss: %ld kB", &kib) == 1) {
      sum += kib * 1024;
    }
  }
  std::fclose(f);
  return sum;
}

void start(long threads, char* stacks) {
  for (long i = 0; i < threads; ++i) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // The first page of each stack, the lowest, is never reached.
    pthread_attr_setstack(&attributes, stacks + static_cast<std::size_t>(i) * stack_bytes + 4096, stack_bytes - 4096);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, body, reinterpret_cast<void*>(i + 1)) != 0) {
      std::fprintf(stderr, "sleepers: thread %ld could not be started\n", i);
      std::exit(1);
    }
    pthread_attr_destroy(&attributes);
  }
  while (asleep.load() < threads) usleep(1000);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options(argc, argv);
  const auto threads = static_cast<long>(options.number("threads", 1000));
  const bool settled = options.flag("settled");
  options.done();
  if (threads < 1 || threads > 1'000'000) bench::Options::fail("that number of threads");
  const std::size_t bytes = stack_bytes * static_cast<std::size_t>(threads);
  auto* const stacks =
      static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (stacks == MAP_FAILED) return 1;
  // The kernel may merge neighbours with the stacks; a page without access on both sides keeps them apart.
  mprotect(stacks, 4096, PROT_NONE);
  const auto from = reinterpret_cast<std::uintptr_t>(stacks);
  const auto to = from + bytes;
  resident_outside(from, to);  // the first call faults in what the later ones need
  const long before = resident_outside(from, to);
  const std::size_t live_before = mallinfo2().uordblks;
  const bench::Phase phase;
  start(threads, stacks);
  const bench::Spent spent = phase.spent();
  usleep(100'000);
  const long grown = resident_outside(from, to) - before;
  bench::Line line;
  line.add("threads", static_cast<double>(threads)).add("grown_bytes", static_cast<double>(grown));
  line.add("live_bytes", static_cast<double>(mallinfo2().uordblks) - static_cast<double>(live_before));
  line.add("seconds", spent.seconds).add("cpu_seconds", spent.cpu_seconds).add("faults", spent.faults);
  line.add("operations", 2.0 * objects * static_cast<double>(threads));
  if (settled) {
    usleep(900'000);
    line.add("settled_rss", static_cast<double>(resident_outside(from, to)));
  }
  line.end();
  std::fflush(stdout);
  _exit(0);
}
