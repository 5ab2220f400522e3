// SPDX-License-Identifier: MIT OR Apache-2.0
// What stays resident near a limit of memory. argv: the limit in MiB, then the shape:
//
//   spike     most of the limit is taken and freed
//   growth    small blocks are freed, a few in each 64 KiB stay, and large ones are taken up to the last tenth
//
// and, before the shape, "again FILE": the limit is written into FILE, and found by ticks, in a process with a second thread;
// "again -": it is there already.
//
// What is free may be three quarters of what is left up to nine tenths of the limit.
#include "env_test.h"

#include <algorithm>
#include <fcntl.h>
#include <string_view>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t kib = 1024, mib = 1024 * kib;
constexpr std::size_t bookkeeping = 2 * mib;  // metadata, what slots need

char* blocks[1 << 17];
std::size_t count = 0, live = 0, at_start = 0, limit = 0;

void take(std::size_t size) {
  check(count < std::size(blocks), "the table is full");
  blocks[count] = static_cast<char*>(opaque(std::malloc(size)));
  check(blocks[count] != nullptr, "no block");
  std::memset(blocks[count++], 1, size);
  live += size;
}

void free_last(std::size_t size) {
  std::free(blocks[--count]);
  live -= size;
}

void check_free(const char* when, std::size_t beside = 0) {
  const std::size_t most = limit / 10 * 9, here = resident() - std::min(resident(), at_start);
  char line[160];
  std::snprintf(line, sizeof line, "%s: %zu KiB resident, %zu live\n", when, here / kib, live / kib);
  say(STDOUT_FILENO, line);
  check(here <= live + (most - std::min(most, live)) / 4 * 3 + bookkeeping + beside,
        "more memory is free than the limit allows");
}

void spike() {
  constexpr std::size_t size = 3000;
  while (live < limit / 4 * 3) take(size);
  while (count != 0) free_last(size);
  check_free("spike");
}

void growth() {
  constexpr std::size_t size = 3000, per_piece = 64 * kib / size, large = 300'000;
  while (live < limit / 2) take(size);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % per_piece == 0) {
      blocks[kept++] = blocks[i];
    } else {
      std::free(blocks[i]);
      live -= size;
    }
  }
  count = kept;
  const std::size_t beside = kept * 8 * kib + limit / 50;  // pages of small blocks that stay, metadata
  check_free("freed", beside);
  for (const std::size_t tenths : {5, 7, 8, 9}) {
    while (live + large < limit / 10 * tenths) take(large);  // its span is longer by a tenth
    check_free("grown", beside);
  }
}

void* sleep_for_ever(void*) {
  for (;;) pause();
}

// A look at the clock in each turn: with TERRACE_DECAY_MS=20, which makes ticks 11 ms long, each is a tick, or ends the last
// one.
void go_on() {
  for (int i = 0; i < 40; ++i) {
    std::free(opaque(std::malloc(5 * mib)));
    usleep(12000);
  }
}

void find_limit_again(const char* file) {
  pthread_t thread{};
  check(pthread_create(&thread, nullptr, sleep_for_ever, nullptr) == 0, "pthread_create");
  const int fd = *file == '-' ? -1 : open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd >= 0) {
    char text[32];
    std::snprintf(text, sizeof text, "%zu\n", limit);
    say(fd, text);
    close(fd);
  }
  go_on();
}

}  // namespace

int main(int argc, char** argv) {
  check(argc > 2, "which limit, and which shape?");
  limit = std::strtoull(argv[1], nullptr, 10) * mib;
  std::memset(blocks, 1, sizeof blocks);
  std::free(filled(100));
  if (argc == 5 && std::strcmp(argv[2], "again") == 0) find_limit_again(argv[3]);
  at_start = resident();
  const std::string_view shape = argv[argc - 1];
  if (shape == "spike") spike();
  if (shape == "growth") growth();
  ok();
}
