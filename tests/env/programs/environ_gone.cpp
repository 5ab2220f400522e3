// SPDX-License-Identifier: MIT OR Apache-2.0
// `environ` is the program's: at its end it may point to a frame that is left, a block that was freed, or nothing at all.
#include "env_test.h"

#include <string_view>
#include <sys/mman.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

extern char** environ;

namespace {

__attribute__((noinline)) void leave_in_frame() {
  static char a[] = "A=1";
  char* variables[] = {a, nullptr};
  environ = opaque(&variables[0]);
}

__attribute__((noinline)) void overwrite_frame() {
  volatile char rubbish[4096];
  for (volatile char& c : rubbish) c = 0x41;
}

}  // namespace

int main(int /*count*/, char** arguments) {
  const std::string_view how = arguments[1] != nullptr ? arguments[1] : "";
  if (how == "frame") {
    leave_in_frame();
    overwrite_frame();
  } else if (how == "block") {
    auto** const variables = static_cast<char**>(filled(64));
    environ = variables;
    std::free(opaque(variables));
  } else if (how == "unmapped") {
    void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    environ = static_cast<char**>(page);
    munmap(page, 4096);
  } else {
    environ = nullptr;
  }
  std::printf("ok\n");  // buffered: it is written at exit, before or after whatever may crash
  return 0;
}
