// SPDX-License-Identifier: MIT OR Apache-2.0
// At a limit of addresses: what does not fit is refused again and again; what was freed is there for the next request at once,
// in whatever size and by whichever thread it was freed.
#include "env_test.h"

#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t limit_bytes = 96 * mib;

// In a list, so that nothing but these blocks is needed.
struct Link {
  Link* next;
};
Link* list = nullptr;
std::size_t count = 0;

void take_all_there_is(std::size_t size) {
  while (auto* const p = static_cast<Link*>(opaque(std::malloc(size)))) {
    p->next = list;
    list = p;
    ++count;
  }
}

// Those in the middle last: they are what waits in the levels then, and no longer run of addresses is free without them.
void free_all() {
  Link* last = nullptr;
  const std::size_t middle = count / 2;
  for (std::size_t i = 0; list != nullptr; ++i) {
    Link* const p = list;
    list = p->next;
    if (i + 64 < middle || i > middle + 64) {
      std::free(p);
    } else {
      p->next = last;
      last = p;
    }
  }
  while (last != nullptr) {
    Link* const p = last;
    last = p->next;
    std::free(p);
  }
  count = 0;
}

void* free_in_thread(void*) {
  free_all();
  return nullptr;
}

void run(std::size_t size, bool by_thread, const pthread_attr_t* attributes) {
  take_all_there_is(size);
  const std::size_t wanted = count * size / 8 * 5;
  for (int i = 0; i < 3; ++i) {
    errno = 0;
    check(opaque(std::malloc(wanted)) == nullptr, "memory beyond the limit");
    check(errno == ENOMEM, "refused without ENOMEM");
  }
  pthread_t thread;
  if (by_thread && pthread_create(&thread, attributes, free_in_thread, nullptr) == 0) {
    pthread_join(thread, nullptr);
  } else {
    free_all();
  }
  auto* const p = static_cast<char*>(opaque(std::malloc(wanted)));
  check(p != nullptr, "what was freed is not there");
  p[0] = p[wanted - 1] = 1;
  std::free(p);
}

}  // namespace

int main() {
  static char stack[128 << 10] __attribute__((aligned(4096)));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, sizeof stack);
  const rlimit limit{limit_bytes, limit_bytes};
  check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  for (const std::size_t size :
       {std::size_t{64}, std::size_t{3000}, std::size_t{50000}, std::size_t{131072}, std::size_t{300000}}) {
    for (int round = 0; round < 2; ++round) run(size, round % 2 == 1, &attributes);
  }
  ok();
}
