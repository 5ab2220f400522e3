// SPDX-License-Identifier: MIT OR Apache-2.0
// Catches what operator new throws and does not name std::bad_alloc: a static runtime may then be without it.
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

int main() {
  volatile std::size_t impossible = SIZE_MAX / 2 - 100;
  try {
    ::operator delete(::operator new(impossible));
  } catch (const std::exception& e) {
    return std::strcmp(e.what(), "std::bad_alloc") == 0 ? 0 : 1;
  }
  return 2;
}
