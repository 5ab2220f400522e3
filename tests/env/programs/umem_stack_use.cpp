// SPDX-License-Identifier: MIT OR Apache-2.0
// How much stack libumem's calls take in a program with many caches. argv: the most bytes.
#include "stack.h"

#include <sys/resource.h>
#include <umem.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr int count = 20000, caches = 80, of_cache = 60;
void* blocks[count];
int order[count];
umem_cache_t* cache[caches];
void* objects[caches][of_cache];
Random random_numbers{3};
char names[caches][32];

int construct(void* object, void*, int) {
  *static_cast<char*>(object) = 1;
  return 0;
}
void destruct(void*, void*) {}

// Every fourth has functions for its objects, and one of five large ones.
std::size_t size_of_object(int i) {
  return i % 5 == 4 ? static_cast<std::size_t>(i) * 3000 : 16 + static_cast<std::size_t>(i) * 24;
}

void create() {
  calls_from_here();
  for (int i = 0; i < caches; ++i) {
    const bool functions = i % 4 == 0;
    cache[i] = umem_cache_create(names[i], size_of_object(i), 0, functions ? construct : nullptr,
                                 functions ? destruct : nullptr, nullptr, nullptr, nullptr, 0);
    check(cache[i] != nullptr, "no cache");
  }
}

void take_objects() {
  calls_from_here();
  for (int j = 0; j < of_cache; ++j) {
    for (int i = 0; i < caches; ++i) objects[i][j] = umem_cache_alloc(cache[i], UMEM_DEFAULT);
  }
}

void free_objects() {
  calls_from_here();
  for (int j = 0; j < of_cache; ++j) {
    for (int i = 0; i < caches; ++i) umem_cache_free(cache[i], objects[i][(j * 7 + i) % of_cache]);
  }
}

void destroy() {
  calls_from_here();
  for (umem_cache_t* c : cache) umem_cache_destroy(c);
}

void of_caches() {
  for (int round = 0; round < 3; ++round) {
    take_objects();
    free_objects();
  }
}

std::size_t size_of_block(int i) { return 1 + static_cast<std::size_t>(i) * 37 % (i % 50 == 0 ? 30000 : 600); }

void take(int n) {
  calls_from_here();
  for (int i = 0; i < n; ++i) blocks[i] = umem_alloc(size_of_block(i), UMEM_DEFAULT);
}

void free_all(int n) {
  for (int i = 0; i < n; ++i) order[i] = i;
  for (int i = n - 1; i > 0; --i) std::swap(order[i], order[random_numbers.below(static_cast<std::uint64_t>(i) + 1)]);
  calls_from_here();
  for (int i = 0; i < n; ++i) umem_free(blocks[order[i]], size_of_block(order[i]));
}

void by_size() {
  for (int round = 0; round < 3; ++round) {
    take(count);
    free_all(count);
  }
}

void large() {
  calls_from_here();
  for (int i = 0; i < 160; ++i) blocks[i] = umem_alloc(200000 + static_cast<std::size_t>(i) * 5000, UMEM_DEFAULT);
  for (int i = 0; i < 160; ++i) umem_free(blocks[i], 200000 + static_cast<std::size_t>(i) * 5000);
}

void aligned() {
  calls_from_here();
  for (int i = 0; i < 300; ++i)
    blocks[i] = umem_alloc_align(1 + static_cast<std::size_t>(i) * 977, std::size_t{16} << i % 13, UMEM_DEFAULT);
  for (int i = 0; i < 300; ++i) umem_free_align(blocks[i], 1 + static_cast<std::size_t>(i) * 977);
}

void ticks() {
  for (int round = 0; round < 20; ++round) {
    take(2000);
    take_objects();
    free_all(2000);
    free_objects();
    usleep(3000);
  }
}

void reap() {
  take_objects();
  free_objects();
  calls_from_here();
  umem_reap();
}

// A list through the blocks, until there is no memory: the last resorts.
void exhaust() {
  calls_from_here();
  rlimit before{}, limit{};
  getrlimit(RLIMIT_AS, &before);
  limit = before;
  limit.rlim_cur = 64 * mib;  // below what is in use: nothing more
  setrlimit(RLIMIT_AS, &limit);
  for (const std::size_t size : {std::size_t{256}, std::size_t{16000}, std::size_t{600000}}) {
    void** last = nullptr;
    while (auto** const p = static_cast<void**>(umem_alloc(size, UMEM_DEFAULT))) {
      *p = static_cast<void*>(last);
      last = p;
    }
    while (last != nullptr) {
      auto** const next = static_cast<void**>(*last);
      umem_free(last, size);
      last = next;
    }
  }
  setrlimit(RLIMIT_AS, &before);
}

constexpr Operation operations[] = {{"create", create},    {"caches", of_caches}, {"by size", by_size}, {"large", large},
                                    {"aligned", aligned},  {"ticks", ticks},      {"reap", reap},       {"exhaust", exhaust},
                                    {"after it", by_size}, {"destroy", destroy},  {"create", create},   {"caches", of_caches},
                                    {"reap", reap},        {"destroy", destroy}};

void* wait_for_ever(void*) {
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  check(argc >= 2, "how many bytes?");
  const std::size_t most = std::strtoull(argv[1], nullptr, 10);
  for (int i = 0; i < caches; ++i) std::snprintf(names[i], sizeof names[i], "cache %d", i);
  pthread_t other{};
  if (argc > 2) check(pthread_create(&other, nullptr, wait_for_ever, nullptr) == 0, "pthread_create");
  check(worst_of(operations) <= most, "a call takes more stack than it may");
  ok();
}
