// SPDX-License-Identifier: MIT OR Apache-2.0
// Under a limit of memory: allocates until nothing is left, checks how that is said, frees, and must get (nearly) as much
// again, in blocks of another size. argv: bytes that must be had at least, threads that stand by.
#include "env_test.h"

#include <new>
#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

struct Link {
  Link* next;
};

// Blocks of one size until there is no more; each is touched. Bytes.
std::size_t take_all(std::size_t size, Link*& list) {
  std::size_t bytes = 0;
  for (;;) {
    errno = 0;
    auto* const p = static_cast<Link*>(opaque(std::malloc(size)));
    if (p == nullptr) {
      check(errno == ENOMEM, "malloc failed without ENOMEM");
      return bytes;
    }
    auto* const bytes_of = static_cast<volatile char*>(static_cast<void*>(p));
    for (std::size_t at = 0; at < size; at += 4096) bytes_of[at] = 1;
    p->next = list;
    list = p;
    bytes += size;
  }
}

void free_all(Link*& list) {
  while (list != nullptr) {
    Link* const next = list->next;
    std::free(list);
    list = next;
  }
}

// Nothing is left, and everybody says so.
void check_refusals(std::size_t size) {
  errno = 0;
  check(opaque(std::calloc(2, size)) == nullptr && errno == ENOMEM, "calloc had memory");
  void* p = nullptr;
  check(posix_memalign(&p, 64, 2 * size) == ENOMEM && p == nullptr, "posix_memalign had memory");
  errno = 0;
  check(opaque(aligned_alloc(4096, 2 * size)) == nullptr && errno == ENOMEM, "aligned_alloc had memory");
  check(opaque(::operator new(2 * size, std::nothrow)) == nullptr, "new had memory");
  try {
    p = opaque(::operator new(2 * size));
    fail("new threw nothing");
  } catch (const std::bad_alloc&) {
  }
}

void* stand_by(void*) {
  void* const p = filled(100);
  for (;;) pause();
  return p;
}

// Without a limit this would take all memory of the machine.
bool is_limited() {
  for (const auto which : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(which, &limit) == 0 && limit.rlim_cur <= (std::size_t{2} << 30)) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  check(is_limited(), "no limit of memory is set");
  const std::size_t least = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread{};
    check(pthread_create(&thread, &attributes, stand_by, nullptr) == 0, "pthread_create");
  }
  char line[200];
  for (const std::size_t size : {std::size_t{1} << 20, std::size_t{100}, std::size_t{4096}, std::size_t{60000}, std::size_t{24},
                                 std::size_t{1} << 22, std::size_t{1} << 20}) {
    Link* list = nullptr;
    const std::size_t had = take_all(size, list);
    if (size >= (1U << 20)) {
      check_refusals(size);
      auto* const first = reinterpret_cast<char*>(list);
      first[size - 1] = 'q';
      errno = 0;
      check(opaque(std::realloc(list, 64 * size)) == nullptr && errno == ENOMEM, "realloc had memory");
      check(first[size - 1] == 'q', "realloc that failed lost the content");
    }
    free_all(list);
    check_and_free(filled(50000), 50000);
    std::snprintf(line, sizeof line, "%zu bytes in blocks of %zu\n", had, size);
    say(STDOUT_FILENO, line);
    // A block of 24 bytes costs 32 at least, and metadata.
    check(had >= (size < 32 ? least / 2 : least), "less memory than there should be");
  }
  ok();
}
