// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks whose pages are moved by realloc, where the kernel refuses something. argv[1] says what:
//   vectors        a thousand vectors grow, shrink and go: their mappings go with them
//   full           the process has as many mappings as it may have, or a few less
//   below_limit AS|DATA   RLIMIT_AS or RLIMIT_DATA is set to less than what is in use
//   obstacle GIB   somebody reserves addresses right behind the heap
//   no_room        next to no memory is left: realloc takes what it needs, and no room to grow; it shrinks without any
//   freed          a program writes to a large block that it has freed; calloc gives zeros all the same
#include "env_test.h"

#include <algorithm>
#include <cinttypes>
#include <sys/mman.h>
#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

int count_mappings() {
  FILE* const file = std::fopen("/proc/self/maps", "r");
  if (file == nullptr) std::exit(77);
  int lines = 0;
  for (int c = std::getc(file); c != EOF; c = std::getc(file)) lines += c == '\n' ? 1 : 0;
  std::fclose(file);
  return lines;
}

// The page at each 64 KiB tells its place and its owner.
void write_marks(char* p, std::size_t from, std::size_t to, std::size_t owner) {
  for (std::size_t at = (from + 65535) / 65536 * 65536; at + sizeof owner <= to; at += 65536) {
    const std::size_t mark = owner * 1000003 + at;
    std::memcpy(p + at, &mark, sizeof mark);
  }
}

void check_marks(const char* p, std::size_t size, std::size_t owner) {
  for (std::size_t at = 0; at + sizeof owner <= size; at += 65536) {
    std::size_t mark = 0;
    std::memcpy(&mark, p + at, sizeof mark);
    check(mark == owner * 1000003 + at, "realloc lost the content");
  }
}

struct Vector {
  char* p = nullptr;
  std::size_t size = 0;
};
Vector vectors[1000];

void resize(Vector& v, std::size_t size) {
  auto* const p = static_cast<char*>(opaque(std::realloc(v.p, size)));
  check(p != nullptr, "realloc gave nothing");
  const std::size_t owner = static_cast<std::size_t>(&v - vectors);
  check_marks(p, std::min(v.size, size), owner);
  write_marks(p, v.size, size, owner);
  v = {p, size};
}

void drop(Vector& v) {
  std::free(v.p);
  v = {};
}

void run_vectors() {
  resize(vectors[0], 4 * mib);
  drop(vectors[0]);
  const int before = count_mappings();
  // Two mappings for each block that was moved, and no more such blocks than a 64th of the mappings that a process may have.
  const int most_live = before + 65530 / 32 + 8;
  Random random{7};
  for (int i = 0; i < 8000; ++i) {
    Vector& v = vectors[random.below(std::size(vectors))];
    const std::uint64_t what = random.below(16);
    if (v.size > 3 * mib || what == 0) {
      drop(v);
    } else {
      resize(v, what == 1 && v.size != 0 ? v.size - v.size / 3 : std::max(mib, v.size + v.size / 2));
    }
    if (i % 1000 == 0) check(count_mappings() <= most_live, "more mappings than there should ever be");
  }
  for (Vector& v : vectors) drop(v);
  const int after = count_mappings();
  std::printf("%d mappings, %d when all was freed\n", before, after);
  std::fflush(stdout);
  check(after <= before + 3, "mappings stay when all was freed");
}

void* fillers[400000];
std::size_t filler_count = 0;

void fill_mappings() {
  while (filler_count < std::size(fillers)) {
    const int protection = filler_count % 2 == 0 ? PROT_NONE : PROT_READ;
    void* const p = mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    fillers[filler_count++] = p;
  }
  std::exit(77);  // a process may have more than this program can make
}

void grow_at_the_limit(std::size_t owner, bool split, bool terrace) {
  Vector& v = vectors[owner];
  auto* const middle = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(v.p) + v.size / 4 + 4095) / 4096 * 4096);
  if (split) madvise(middle, v.size / 4, MADV_NOHUGEPAGE);  // as programs do for their arrays
  auto* const q = static_cast<char*>(opaque(std::realloc(v.p, 2 * v.size)));
  check(q != nullptr || !terrace, "no mapping to be had is not memory to be had");
  check_marks(q != nullptr ? q : v.p, v.size, owner);
  if (q == nullptr) return;
  write_marks(q, v.size, 2 * v.size, owner);
  v = {q, 2 * v.size};
}

void run_full() {
  const bool terrace = rung() != nullptr;
  static void* blockers[32];
  for (std::size_t i = 0; i < 32; ++i) {
    resize(vectors[i], 3 * mib);
    blockers[i] = filled(2 * mib);  // so that no vector can grow where it is
  }
  fill_mappings();
  for (std::size_t i = 0; i < 32; ++i) {
    grow_at_the_limit(i, i % 2 == 0, terrace);
    if (i % 2 == 1) munmap(fillers[--filler_count], 4096);
  }
  fill_mappings();
  if (terrace) {
    for (std::size_t i = 100; i < 500; ++i) resize(vectors[i], mib);  // the heap grows
  }
  for (std::size_t i = 0; i < 32; ++i) check_and_free(blockers[i], 2 * mib);
  for (Vector& v : vectors) {
    if (v.p != nullptr) check_marks(v.p, v.size, static_cast<std::size_t>(&v - vectors));
    drop(v);
  }
  malloc_trim(0);
  check_zeroed(50 * mib);
  while (filler_count != 0) munmap(fillers[--filler_count], 4096);
  check_zeroed(50 * mib);
}

void run_below_limit(const char* which) {
  constexpr std::size_t room = 64 * mib;
  std::free(filled(room));
  for (std::size_t i = 0; i < 4; ++i) {
    resize(vectors[i], 4 * mib);
    filled(mib);
  }
  const rlimit limit{8 * mib, 8 * mib};
  check(setrlimit(std::strcmp(which, "AS") == 0 ? RLIMIT_AS : RLIMIT_DATA, &limit) == 0, "setrlimit");
  for (std::size_t i = 0; i < 4; ++i) {
    Vector& v = vectors[i];
    errno = 0;
    auto* const p = static_cast<char*>(opaque(std::realloc(v.p, 2 * v.size)));
    if (p == nullptr) check(errno == ENOMEM, "realloc failed without ENOMEM");
    check_marks(p != nullptr ? p : v.p, v.size, i);
    if (p == nullptr) continue;
    std::memset(p, 1, 2 * v.size);
    std::free(p);
  }
  for (int i = 0; i < 16; ++i) {
    void* const p = opaque(std::malloc(4 * mib));
    if (p != nullptr) std::memset(p, 1, 4 * mib);
  }
}

void run_obstacle(std::size_t bytes) {
  const auto block = reinterpret_cast<std::uintptr_t>(filled(mib));
  FILE* const file = std::fopen("/proc/self/maps", "r");
  if (file == nullptr) std::exit(77);
  char line[512];
  std::uintptr_t low = 0, high = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &low, &high) == 2 && low <= block && block < high) break;
  }
  std::fclose(file);
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const obstacle = mmap(reinterpret_cast<void*>(high), bytes, PROT_NONE, flags, -1, 0);
  if (obstacle == MAP_FAILED) std::exit(77);
  for (Vector& v : vectors) resize(v, mib);
  for (Vector& v : vectors) {
    check(v.p + v.size <= obstacle || v.p >= static_cast<char*>(obstacle) + bytes, "a block in somebody else's reservation");
    drop(v);
  }
}

void run_no_room() {
  constexpr std::size_t have = 1000, want = 1040, unused_class = 3000;
  const rlimit limit{200 * mib, 200 * mib};
  check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  void* grows = filled(have);
  void* shrinks = filled(10000);
  struct Link {
    Link* next;
  }* list = nullptr;
  while (auto* const p = static_cast<Link*>(opaque(std::malloc(want)))) {
    p->next = list;
    list = p;
  }
  Link* const last = list;
  list = list->next;
  std::free(last);
  errno = 0;
  grows = opaque(std::realloc(grows, want));
  check(grows != nullptr, "realloc found no room, though there was what it needs");
  shrinks = opaque(std::realloc(shrinks, unused_class));
  check(shrinks != nullptr, "realloc to less gave nothing");
  check(errno == 0, "realloc that worked has set errno");
  check(static_cast<unsigned char*>(grows)[have - 1] == mark_of(have), "realloc lost the content");
  check(static_cast<unsigned char*>(shrinks)[unused_class - 1] == mark_of(10000), "realloc lost the content");
  while (list != nullptr) {
    Link* const next = list->next;
    std::free(list);
    list = next;
  }
  std::free(grows);
  std::free(shrinks);
}

void run_freed() {
  for (const std::size_t size : {std::size_t{270000}, std::size_t{600000}, 3 * mib, 40 * mib}) {
    for (const bool trimmed : {false, true}) {
      auto* const p = static_cast<char*>(filled(size));
      std::free(p);
      if (trimmed) malloc_trim(0);
      std::memset(opaque(p), 2, size);
      check_zeroed(size);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  check(argc > 1, "say what");
  const char* const what = argv[1];
  if (std::strcmp(what, "vectors") == 0) run_vectors();
  if (std::strcmp(what, "full") == 0) run_full();
  if (std::strcmp(what, "below_limit") == 0) run_below_limit(argv[2]);
  if (std::strcmp(what, "obstacle") == 0) run_obstacle(std::strtoull(argv[2], nullptr, 0) << 30);
  if (std::strcmp(what, "no_room") == 0) run_no_room();
  if (std::strcmp(what, "freed") == 0) run_freed();
  ok();
}
