// SPDX-License-Identifier: MIT OR Apache-2.0
// A library that is opened with RTLD_DEEPBIND, as PHP opens its extensions: its malloc and free are those of the program. It
// opens another one, which only its own RUNPATH leads to. argv: the library; the other's name.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

template <class Function>
Function* function(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  check(found != nullptr, name);
  return found;
}

}  // namespace

int main(int, char** argv) {
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
  check(library != nullptr, "dlopen");
  auto* const allocate = function<void*(std::size_t)>(library, "plugin_allocate");
  auto* const release = function<void(void*)>(library, "plugin_free");
  auto* const open = function<void*(const char*, int)>(library, "plugin_open");
  for (std::size_t size = 1; size < 400'000; size = size * 3 + 1) {
    std::free(allocate(size));
    void* const mine = std::malloc(size);
    std::memset(mine, 1, size);
    release(mine);
  }
  for (const int mode : {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND}) {
    check(dlopen(argv[2], mode) == nullptr, "the program finds what only the library's RUNPATH leads to");
    void* const other = open(argv[2], mode);
    check(other != nullptr, "the library's RUNPATH is not looked at");
    dlclose(other);
  }
  dlclose(library);
  ok();
}
