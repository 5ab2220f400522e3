// SPDX-License-Identifier: MIT OR Apache-2.0
// Every function that gives memory, by a table of sizes and alignments up to 64 MiB: blocks are aligned as the function
// promises, can be written from the first byte to the last, and do not overlap. Runs on whatever is preloaded: alignments.py.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <new>
#include <unistd.h>

namespace {

using std::size_t;

constexpr size_t kib = 1024, mib = 1024 * kib, largest = 64 * mib, line = 64;
const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));

constexpr size_t sizes[] = {0,
                            1,
                            2,
                            7,
                            8,
                            9,
                            15,
                            16,
                            17,
                            23,
                            24,
                            25,
                            31,
                            32,
                            33,
                            40,
                            48,
                            63,
                            64,
                            65,
                            100,
                            128,
                            129,
                            192,
                            255,
                            320,
                            640,
                            1000,
                            2048,
                            2049,
                            4095,
                            4 * kib,
                            4097,
                            8 * kib,
                            9000,
                            16 * kib,
                            20000,
                            64 * kib,
                            100000,
                            128 * kib - 16,
                            128 * kib - 8,
                            128 * kib,
                            128 * kib + 1,
                            256 * kib,
                            256 * kib + 1,
                            mib,
                            mib + 1,
                            4 * mib,
                            4 * mib + 100,
                            largest - 8,
                            largest};

template <class F>
F of_libumem(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}
const auto umem_alloc = of_libumem<void* (*)(size_t, int)>("umem_alloc");
const auto umem_zalloc = of_libumem<void* (*)(size_t, int)>("umem_zalloc");
const auto umem_free = of_libumem<void (*)(void*, size_t)>("umem_free");
const auto umem_alloc_align = of_libumem<void* (*)(size_t, size_t, int)>("umem_alloc_align");
const auto umem_free_align = of_libumem<void (*)(void*, size_t)>("umem_free_align");

size_t as_asked(size_t align, size_t /*size*/) { return align; }
size_t of_malloc(size_t /*align*/, size_t /*size*/) { return alignof(std::max_align_t); }
size_t of_pages(size_t /*align*/, size_t /*size*/) { return page; }
size_t of_umem(size_t /*align*/, size_t size) { return size % page == 0 ? page : size % line == 0 ? line : size < 16 ? 8 : 16; }

struct Function {
  const char* name;
  size_t (*promised)(size_t align, size_t size);
  size_t smallest_alignment;  // that it takes
  void* (*take)(size_t align, size_t size);
  void (*give)(void* p, size_t align, size_t size);
};

void give_to_free(void* p, size_t /*align*/, size_t /*size*/) { std::free(p); }
void give_to_umem(void* p, size_t /*align*/, size_t size) { umem_free(p, size); }

const Function functions[] = {
    {"posix_memalign", as_asked, sizeof(void*),
     [](size_t a, size_t n) {
       void* p = nullptr;
       return posix_memalign(&p, a, n) == 0 ? p : nullptr;
     },
     give_to_free},
    {"aligned_alloc", as_asked, 1, [](size_t a, size_t n) { return aligned_alloc(a, n); }, give_to_free},
    {"memalign", as_asked, 1, [](size_t a, size_t n) { return memalign(a, n); }, give_to_free},
    {"aligned new", as_asked, 1, [](size_t a, size_t n) { return ::operator new (n, std::align_val_t{a}); },
     [](void* p, size_t a, size_t) { ::operator delete (p, std::align_val_t{a}); }},
    {"aligned new[]", as_asked, 1, [](size_t a, size_t n) { return ::operator new[](n, std::align_val_t{a}, std::nothrow); },
     [](void* p, size_t a, size_t n) { ::operator delete[](p, n, std::align_val_t{a}); }},
    {"realloc of memalign", of_malloc, 1, [](size_t a, size_t n) { return realloc(memalign(a, 24), n + 1); }, give_to_free},
    {"valloc", of_pages, 0, [](size_t, size_t n) { return valloc(n); }, give_to_free},
    {"pvalloc", of_pages, 0, [](size_t, size_t n) { return pvalloc(n); }, give_to_free},
    {"malloc", of_malloc, 0, [](size_t, size_t n) { return malloc(n); }, give_to_free},
    {"calloc", of_malloc, 0, [](size_t, size_t n) { return calloc(1, n); }, give_to_free},
    {"realloc", of_malloc, 0, [](size_t, size_t n) { return realloc(malloc(1), n + 1); }, give_to_free},
    {"realloc from none", of_malloc, 0, [](size_t, size_t n) { return realloc(nullptr, n); }, give_to_free},
    {"reallocarray", of_malloc, 0, [](size_t, size_t n) { return reallocarray(nullptr, 1, n); }, give_to_free},
    {"new", of_malloc, 0, [](size_t, size_t n) { return ::operator new(n); },
     [](void* p, size_t, size_t n) { ::operator delete(p, n); }},
    {"umem_alloc", of_umem, 0, [](size_t, size_t n) { return umem_alloc(n, 0); }, give_to_umem},
    {"umem_zalloc", of_umem, 0, [](size_t, size_t n) { return umem_zalloc(n, 0); }, give_to_umem},
    {"umem_alloc_align", as_asked, 1, [](size_t a, size_t n) { return umem_alloc_align(n, a, 0); },
     [](void* p, size_t, size_t n) { umem_free_align(p, n); }},
};

bool is_of_libumem(const Function& f) { return std::strncmp(f.name, "umem", 4) == 0; }

int faults = 0;

// One for each function and size.
void tell(const Function& f, size_t align, size_t size, const void* p, const char* what) {
  static const void* last_function = nullptr;
  static size_t last_size = 0;
  ++faults;
  if (last_function == &f && last_size == size) return;
  last_function = &f;
  last_size = size;
  std::printf("%s, alignment %zu, %zu bytes: %p %s\n", f.name, align, size, p, what);
}

void try_out(const Function& f, size_t align, size_t size) {
  constexpr int most = 5;
  const int count = size + align <= mib ? most : 1;
  unsigned char* blocks[most];
  for (int i = 0; i < count; ++i) {
    auto* const p = blocks[i] = static_cast<unsigned char*>(f.take(align, size));
    if (p == nullptr) {
      if (size > 0 || !is_of_libumem(f)) tell(f, align, size, p, "is no block");
      continue;
    }
    if (reinterpret_cast<std::uintptr_t>(p) % f.promised(align, size) != 0) tell(f, align, size, p, "is not aligned");
    if (size > 0) p[0] = p[size - 1] = static_cast<unsigned char>(i + 1);
  }
  for (int i = 0; i < count; ++i) {
    unsigned char* const p = blocks[i];
    if (p == nullptr) continue;
    if (size > 0 && (p[0] != i + 1 || p[size - 1] != i + 1)) tell(f, align, size, p, "overlaps another block");
    f.give(p, align, size);
  }
}

}  // namespace

int main() {
  for (const Function& f : functions) {
    if (is_of_libumem(f) && umem_alloc == nullptr) continue;
    for (const size_t size : sizes) {
      if (f.smallest_alignment == 0) {
        try_out(f, 0, size);
        continue;
      }
      // Large alignments with some sizes only, large sizes with some alignments: a firewall maps all of it, guards fill it.
      const size_t largest_align = size % (4 * kib) <= 1 ? largest : 64 * kib;
      for (size_t align = f.smallest_alignment; align <= largest_align; align *= align < 64 * kib && size <= mib ? 2 : 32)
        try_out(f, align, size);
    }
  }
  return faults == 0 ? 0 : 1;
}
