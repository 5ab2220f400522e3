// SPDX-License-Identifier: MIT OR Apache-2.0
// What stays resident beyond live blocks after histories that are hard on an allocator. argv: the shape, then its arguments.
//
// The bound on what an allocator may keep is the larger of 16 MiB and a quarter of what is live, and up to 48 MiB of what was
// in use lately; when the program has gone on for twenty ticks, that is forgotten. A page that holds part of a live block can
// not be given back; so live counts in pages here, as this program finds them from the addresses of its blocks.
#include "env_test.h"

#include <algorithm>
#include <semaphore>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>
#include <vector>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t granule = 64 * kib;  // large blocks are a multiple of it
constexpr std::size_t most_blocks = std::size_t{1} << 20;
constexpr std::size_t floor_of_bound = 16 * mib;
constexpr std::size_t freed_lately = 48 * mib;
// What no allocator gives back: its metadata, here about 1 % of the addresses it ever used, and pages of libraries.
constexpr std::size_t bookkeeping = 6 * mib;

struct Block {
  char* start;
  std::size_t size;
};
Block blocks[most_blocks];
std::size_t count = 0;
std::size_t at_start = 0;  // resident
Random random_numbers{7};

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

Block taken(std::size_t size, std::size_t align = 16) {
  void* p = nullptr;
  if (align == 16) {
    p = opaque(std::malloc(size));
  } else {
    check(posix_memalign(&p, align, size) == 0, "posix_memalign");
  }
  check(p != nullptr && reinterpret_cast<std::uintptr_t>(p) % align == 0, "no block, or a misaligned one");
  std::memset(p, 1, size);
  return {static_cast<char*>(p), size};
}

void take(std::size_t size, std::size_t align = 16) {
  check(count < most_blocks, "the table is full");
  blocks[count++] = taken(size, align);
}

// Frees all blocks from `from` on but one in `keep` of them (0: none).
void free_all_but(std::size_t keep, std::size_t from = 0) {
  std::size_t kept = from;
  for (std::size_t i = from; i < count; ++i) {
    if (keep != 0 && (i - from) % keep == 0) {
      blocks[kept++] = blocks[i];
    } else {
      std::free(blocks[i].start);
    }
  }
  count = kept;
}

// Bytes of the pages that hold part of a block that is in use.
std::size_t live_pages() {
  const std::size_t page = page_size();
  std::sort(blocks, blocks + count, [](const Block& a, const Block& b) { return a.start < b.start; });
  std::size_t pages = 0;
  std::uintptr_t next = 0;  // the first page that is not counted yet
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(blocks[i].start) / page;
    const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(blocks[i].start) + blocks[i].size - 1) / page;
    if (last < next) continue;
    pages += last - std::max(first, next) + 1;
    next = last + 1;
  }
  return pages * page;
}

void say_resident(const char* when, std::size_t bytes, std::size_t live) {
  char line[160];
  std::snprintf(line, sizeof line, "%s: %zu KiB resident, %zu live\n", when, bytes / kib, live / kib);
  say(STDOUT_FILENO, line);
}

void check_kept(const char* when, std::size_t beside) {
  const std::size_t live = live_pages(), here = resident() - std::min(resident(), at_start);
  say_resident(when, here, live);
  check(here <= live + std::max(floor_of_bound, live / 4) + beside + bookkeeping,
        "more memory is resident than the bound allows");
}

// A little of everything, for more than twenty ticks.
void go_on() {
  const double end = now() + 0.6;
  const std::size_t before = count;
  while (now() < end) {
    for (std::size_t i = 0; i < 300; ++i) take(100 + i * 13);
    free_all_but(0, before);
    usleep(2000);
  }
}

bool ticks_often() {
  const char* const decay = std::getenv("TERRACE_DECAY_MS");
  return decay != nullptr && std::strtoull(decay, nullptr, 10) <= 20;
}

void check_bound(const char* when, std::size_t beside = 0) {
  check_kept(when, freed_lately + beside);
  if (!ticks_often()) return;
  go_on();
  check_kept("  later", beside);
}

// One block in 64 KiB stays, of each size.
void islands() {
  for (std::size_t size = 48; size <= 4096; size = size * 5 / 4) {
    const std::size_t before = count;
    for (std::size_t i = 0; i < 8 * mib / size; ++i) take(size);
    free_all_but(64 * kib / size, before);
  }
  check_bound("one block in 64 KiB");
  free_all_but(0);
  check_bound("all freed");
}

// Grows by 60 MiB and shrinks to a hundredth, each time in another size.
void sawtooth() {
  for (int round = 0; round < 10; ++round) {
    const std::size_t size = 200 + random_numbers.below(2000), before = count;
    for (std::size_t i = 0; i < 60 * mib / size; ++i) take(size);
    free_all_but(100, before);
  }
  check_bound("ten times to a hundredth");
}

// The same number of blocks all the time, replaced at random by ever larger ones.
void replaced() {
  constexpr std::size_t blocks_at_once = 6000;
  for (std::size_t phase = 0; phase < 8; ++phase) {
    const std::size_t most = 2000 + phase * 1000;
    for (std::size_t i = 0; i < 6 * blocks_at_once; ++i) {
      if (count < blocks_at_once) {
        take(most / 2 + random_numbers.below(most));
        continue;
      }
      Block& block = blocks[random_numbers.below(count)];
      std::free(block.start);
      block = taken(most / 2 + random_numbers.below(most));
    }
  }
  check_bound("replaced by larger ones");
}

// Blocks aligned to a cache line, of a size that is no power of two: twice as much for each would be waste.
void aligned() {
  constexpr std::size_t size = 1088, number = 80000;
  for (std::size_t i = 0; i < number; ++i) take(size, 64);
  say_resident("aligned to a line", resident() - at_start, size * number);
  check(resident() - at_start <= size * number * 5 / 4, "aligned blocks take more than a quarter above their size");
}

// Everything is freed. Then the process sleeps, or allocates on the fast path alone.
void spike(std::size_t size, const char* after) {
  for (std::size_t i = 0; i < std::min(300 * mib / size, most_blocks); ++i) take(size);
  free_all_but(0);
  const double end = now() + 0.3;
  while (now() < end) {
    if (std::strcmp(after, "fast") == 0) {
      for (int i = 0; i < 100; ++i) std::free(opaque(std::malloc(64)));
    }
    usleep(5000);
  }
  check_bound(after);
}

// Small blocks are freed in random order, by several threads, all but a thousand: each that a slot or a depot holds lies alone
// in its page.
void shuffled(std::size_t least, std::size_t most) {
  constexpr std::size_t stay = 1000, threads = 4;
  for (std::size_t i = 0; i < most_blocks; ++i) take(least + random_numbers.below(most - least + 1));
  for (std::size_t i = count - 1; i > 0; --i) std::swap(blocks[i], blocks[random_numbers.below(i + 1)]);
  count = stay;
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([=] {
      for (std::size_t i = stay + t; i < most_blocks; i += threads) std::free(blocks[i].start);
    });
  }
  for (std::thread& t : all) t.join();
  check_bound("freed in random order", floor_of_bound / 4);  // how much is pinned is an estimate
}

// Where all memory is locked, what is mapped has its pages at once: not more is mapped than what is asked for.
void untouched() {
  constexpr std::size_t each = mib, number = 200;
  for (std::size_t i = 0; i < number; ++i) {
    void* const p = opaque(std::malloc(each));
    check(p != nullptr, "no block");
    blocks[count++] = {static_cast<char*>(p), each};
  }
  const std::size_t now = resident() - at_start;
  say_resident("untouched", now, number * each);
  constexpr std::size_t unused = granule / 2 * number;  // behind the blocks, on an average
  check(now <= number * each + unused + 4 * mib, "more memory is mapped, and so resident, than was asked for");
}

// All is freed, and then the kernel puts pages into whatever is mapped.
void locked_afterwards() {
  for (const std::size_t size : {std::size_t{3000}, std::size_t{500'000}}) {
    for (std::size_t i = 0; i < 100 * mib / size; ++i) take(size);
    free_all_but(0);
  }
  const std::size_t before = resident();
  if (mlockall(MCL_CURRENT) != 0) _exit(77);
  malloc_trim(0);
  // Not what had never been touched of libraries, of the stack and of this program.
  say_resident("locked afterwards", resident() - before, 0);
  check(resident() <= before + floor_of_bound, "malloc_trim leaves locked pages that nobody uses");
}

long faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Vectors that grow: a little more than the bound goes round, size by size. Without a tick (see the caller) nothing is
// forgotten: soon all of it is kept, and not more than that.
void turns() {
  constexpr std::size_t at_once = 10;
  long before = 0, pages = 0;
  for (int turn = 0; turn < 60; ++turn) {
    if (turn == 30) before = faults();
    pages = 0;
    for (std::size_t size = 5000; size <= 256 * kib; size = size * 9 / 8) {
      for (std::size_t i = 0; i < at_once; ++i) take(size);
      pages += static_cast<long>(at_once * size / page_size());
      free_all_but(0);
    }
  }
  const long during = (faults() - before) / 30;
  char line[160];
  std::snprintf(line, sizeof line, "turns: %ld faults in each, of %ld pages\n", during, pages);
  say(STDOUT_FILENO, line);
  // None, or those of a few sizes: what slots and depots may hold beside the bound depends on how fast the program is.
  check(during <= pages / 4, "what goes round is given back and faulted in all the time");
  check(resident() - std::min(resident(), at_start) <= floor_of_bound + freed_lately + bookkeeping, "too much is kept");
}

// Blocks shrink to a part of what they were, by so many bytes at a time (0: at once).
void shrunk(std::size_t size, std::size_t to, std::size_t step) {
  while (count < 200 * mib / size) take(size);
  for (Block* b = blocks; b != blocks + count; ++b) {
    for (std::size_t left = size; left != to;) {
      left = step == 0 || left < to + step ? to : left - step;
      auto* const p = static_cast<char*>(opaque(std::realloc(b->start, left)));
      check(p != nullptr && p[0] == 1 && p[left - 1] == 1, "realloc lost the content");
      *b = {p, left};
    }
  }
  // What realloc makes shorter is not kept for being in use lately. Of small steps, each keeps a part.
  if (step == 0) check_kept("shrunk", 0);
  check_bound("shrunk", freed_lately);
  // A span of its own gives pages back by itself, and needs no bound.
  if (to > 256 * kib && step == 0)
    check(resident() - at_start <= live_pages() + bookkeeping, "the ends of shrunk blocks are resident");
  malloc_trim(0);
  const std::size_t after = resident() - std::min(resident(), at_start), live = live_pages();
  say_resident("trimmed", after, live);
  // By steps, the last ones are too small for anything to be done.
  check(after <= live + live / (step == 0 ? 16 : 3) + bookkeeping, "the ends of shrunk blocks are resident after a trim");
}

// The mapping that a block lies in may have huge pages. Giving memory back must not fault any in.
void huge_pages() {
  void* const block = opaque(std::malloc(256 * mib));
  std::uintptr_t low = 0, high = 0;
  static char buffer[1 << 16];
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  check(maps != nullptr, "/proc/self/maps");
  std::setvbuf(maps, buffer, _IOFBF, sizeof buffer);
  char line[512];
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    if (std::sscanf(line, "%lx-%lx", &low, &high) == 2 && low <= at && at < high) break;
  }
  std::fclose(maps);
  if (madvise(reinterpret_cast<void*>(low), high - low, MADV_HUGEPAGE) != 0) _exit(77);
  std::free(block);
  malloc_trim(0);
  for (int i = 0; i < 100; ++i) blocks[count++] = {static_cast<char*>(opaque(std::malloc(1'900'000))), 0};
  const std::size_t before = resident();
  for (std::size_t i = 0; i < count; i += 2) std::free(blocks[i].start);
  malloc_trim(0);
  const std::size_t after = resident();
  std::snprintf(line, sizeof line, "huge pages: %zu KiB before the trim, %zu after\n", before / kib, after / kib);
  say(STDOUT_FILENO, line);
  check(after <= before + 2 * mib, "giving memory back made it resident");
}

std::atomic<int> done{0};
// So few threads have blocks at once that what was in use lately is little beside the bound.
std::counting_semaphore turns_of_threads{8};

void* one_of_many(void* seed) {
  Random sizes{reinterpret_cast<std::uintptr_t>(seed)};
  Block own[64];
  turns_of_threads.acquire();
  for (int round = 0; round < 3; ++round) {
    for (Block& b : own) b = taken(16 + sizes.below(sizes.below(10) == 0 ? 20000 : 2000));
    for (const Block& b : own) std::free(b.start);
  }
  turns_of_threads.release();
  done.fetch_add(1);
  for (;;) pause();
}

// Threads that have freed all they had and sleep keep at most 64 KiB each; `shared`: no more than one process may, together.
void threads(int number, bool shared) {
  constexpr std::size_t stack = 128 * kib;
  const std::size_t bytes = stack * static_cast<std::size_t>(number);
  void* const stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(stacks != MAP_FAILED, "no stacks");
  for (int i = 0; i < number; ++i) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, static_cast<char*>(stacks) + static_cast<std::size_t>(i) * stack, stack);
    pthread_t thread;
    const auto seed = static_cast<std::uintptr_t>(i) + 1;
    check(pthread_create(&thread, &attributes, one_of_many, reinterpret_cast<void*>(seed)) == 0, "pthread_create");
    pthread_attr_destroy(&attributes);
  }
  while (done.load() < number) usleep(1000);
  static unsigned char in_memory[1 << 16];
  std::size_t of_stacks = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof in_memory * page_size()) {
    const std::size_t part = std::min(bytes - at, sizeof in_memory * page_size());
    check(mincore(static_cast<char*>(stacks) + at, part, in_memory) == 0, "mincore");
    for (std::size_t p = 0; p < part / page_size(); ++p) of_stacks += (in_memory[p] & 1) * page_size();
  }
  const std::size_t kept = resident() - at_start - of_stacks;
  char line[160];
  std::snprintf(line, sizeof line, "%d threads: %zu KiB beyond their stacks, %zu each\n", number, kept / kib,
                kept / kib / static_cast<std::size_t>(number));
  say(STDOUT_FILENO, line);
  const std::size_t each = shared ? 0 : 64 * kib;
  check(kept <= floor_of_bound + bookkeeping + each * static_cast<std::size_t>(number), "sleeping threads keep too much");
}

// "locked" and one of these before the shape.
void lock_all(std::string_view how) {
  int flags = 0;
  if (how == "current") flags = MCL_CURRENT;
  if (how == "future") flags = MCL_FUTURE;
  if (how == "all") flags = MCL_CURRENT | MCL_FUTURE;
  if (how == "onfault") flags = MCL_FUTURE | MCL_ONFAULT;
  check(flags != 0, "what is to be locked?");
  if (mlockall(flags) != 0) _exit(77);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 3 && std::strcmp(argv[1], "locked") == 0) {
    lock_all(argv[2]);
    argv += 2;
    argc -= 2;
  }
  check(argc > 1, "which shape?");
  const std::string_view shape = argv[1];
  std::free(taken(100).start);
  std::memset(blocks, 1, sizeof blocks);
  at_start = resident();
  if (shape == "islands") islands();
  if (shape == "sawtooth") sawtooth();
  if (shape == "replaced") replaced();
  if (shape == "aligned") aligned();
  if (shape == "spike") spike(std::strtoull(argv[2], nullptr, 10), argv[3]);
  if (shape == "shuffled") shuffled(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
  if (shape == "turns") turns();
  if (shape == "shrunk")
    shrunk(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[4], nullptr, 10));
  if (shape == "huge_pages") huge_pages();
  if (shape == "untouched") untouched();
  if (shape == "locked_afterwards") locked_afterwards();
  if (shape == "threads") threads(std::atoi(argv[2]), std::strcmp(argv[3], "shared") == 0);
  ok();
  std::fflush(stdout);
  _exit(0);
}
