// SPDX-License-Identifier: MIT OR Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <string>
#include <terrace/cs.h>
#include <terrace/malloc.h>
#include <terrace/stats.h>
#include <terrace/version.h>

int main() {
  auto* const s = new std::string(99, 'x');
  if (malloc_usable_size(s->data()) != 112) return 1;
  delete s;
  try {
    ::operator delete(::operator new(static_cast<std::size_t>(-1) / 4));  // a call: new expressions may be left out
    return 2;
  } catch (const std::bad_alloc&) {
  }
  std::puts(terrace_version());
  return 0;
}
