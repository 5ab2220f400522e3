// SPDX-License-Identifier: MIT OR Apache-2.0
// A program that replaces the operators for single objects alone, or those for arrays as well (ARRAYS): the standard defines
// all other forms by these, so every block has the program's header, whatever form it comes from and goes to.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

using std::align_val_t;
using std::nothrow;
using std::size_t;

struct Calls {
  int allocations = 0;
  int frees = 0;
  bool operator==(const Calls& o) const { return allocations == o.allocations && frees == o.frees; }
};
Calls single, single_aligned;
#if defined(ARRAYS)
Calls array, array_aligned;
#else
Calls &array = single, &array_aligned = single_aligned;
#endif

constexpr size_t header = 64;
constexpr size_t mark = 0x5eed;

void* with_header(Calls& calls, size_t n) {
  ++calls.allocations;
  if (n > SIZE_MAX / 2) throw 42;  // not even an exception of the library's
  auto* const p = static_cast<char*>(std::aligned_alloc(header, header + (n + header - 1) / header * header));
  *reinterpret_cast<size_t*>(p) = mark;
  return p + header;
}
void without_header(Calls& calls, void* p) {
  ++calls.frees;
  if (p == nullptr) return;
  char* const start = static_cast<char*>(p) - header;
  if (*reinterpret_cast<size_t*>(start) != mark) std::abort();
  std::free(start);
}

}  // namespace

void* operator new(size_t n) { return with_header(single, n); }
void operator delete(void* p) noexcept { without_header(single, p); }
void* operator new(size_t n, align_val_t) { return with_header(single_aligned, n); }
void operator delete(void* p, align_val_t) noexcept { without_header(single_aligned, p); }
#if defined(ARRAYS)
void* operator new[](size_t n) { return with_header(array, n); }
void operator delete[](void* p) noexcept { without_header(array, p); }
void* operator new[](size_t n, align_val_t) { return with_header(array_aligned, n); }
void operator delete[](void* p, align_val_t) noexcept { without_header(array_aligned, p); }
#endif

namespace {

constexpr align_val_t a{64};
volatile size_t size = 40;
volatile size_t too_large = SIZE_MAX / 2 + 1;

struct Form {
  const char* name;
  Calls& of;
  void (*run)();
};
const Form forms[] = {
    {"new", single, [] { ::operator delete(::operator new(size)); }},
    {"new, sized", single, [] { ::operator delete(::operator new(size), size); }},
    {"nothrow new", single, [] { ::operator delete(::operator new(size, nothrow), nothrow); }},
    {"nothrow new, plain delete", single, [] { ::operator delete(::operator new(size, nothrow)); }},
    {"new[]", array, [] { ::operator delete[](::operator new[](size)); }},
    {"new[], sized", array, [] { ::operator delete[](::operator new[](size), size); }},
    {"nothrow new[]", array, [] { ::operator delete[](::operator new[](size, nothrow), nothrow); }},
    {"nothrow new[], plain delete", array, [] { ::operator delete[](::operator new[](size, nothrow)); }},
    {"aligned new", single_aligned, [] { ::operator delete(::operator new(size, a), a); }},
    {"aligned new, sized", single_aligned, [] { ::operator delete(::operator new(size, a), size, a); }},
    {"nothrow aligned new", single_aligned, [] { ::operator delete(::operator new(size, a, nothrow), a, nothrow); }},
    {"aligned new[]", array_aligned, [] { ::operator delete[](::operator new[](size, a), a); }},
    {"aligned new[], sized", array_aligned, [] { ::operator delete[](::operator new[](size, a), size, a); }},
    {"nothrow aligned new[]", array_aligned, [] { ::operator delete[](::operator new[](size, a, nothrow), a, nothrow); }},
    {"too large", single, [] { ::operator delete(::operator new(too_large, nothrow)); }},
    {"too large[]", array, [] { ::operator delete[](::operator new[](too_large, nothrow)); }},
    {"too large, aligned", single_aligned, [] { ::operator delete(::operator new(too_large, a, nothrow), a); }},
    {"too large[], aligned", array_aligned, [] { ::operator delete[](::operator new[](too_large, a, nothrow), a); }},
};

}  // namespace

int main() {
  for (const Form& form : forms) {
    Calls* const all[] = {&single, &single_aligned, &array, &array_aligned};
    for (Calls* const calls : all) *calls = {};
    form.run();
    for (Calls* const calls : all) {
      const Calls wanted = calls == &form.of ? Calls{1, 1} : Calls{};
      if (*calls == wanted) continue;
      std::printf("%s: %d and %d calls of the program's operators\n", form.name, calls->allocations, calls->frees);
      return 1;
    }
  }
  return 0;
}
