// SPDX-License-Identifier: MIT OR Apache-2.0
// What a process in a memory control group does. argv: "churn" MIB keeps less than so much alive, in other sizes each time, and
// must not be killed; "exhaust" takes memory until it is.
#include "env_test.h"

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t sizes[] = {48, 3000, 200, 70000, 24, 1000, 500000, 600, 10000, 96};
constexpr std::size_t mib = std::size_t{1} << 20;

void churn(std::size_t live) {
  for (const std::size_t size : sizes) {
    const std::size_t count = live / (size + 16);
    auto** const blocks = static_cast<void**>(filled(count * sizeof(void*)));
    for (std::size_t i = 0; i < count; ++i) blocks[i] = filled(size);
    for (std::size_t i = 0; i < count; ++i) check_and_free(blocks[i], size);
    std::free(blocks);
  }
}

}  // namespace

int main(int argc, char** argv) {
  check(argc > 1, "what?");
  if (std::strcmp(argv[1], "exhaust") == 0) {
    say(STDOUT_FILENO, "taking\n");
    for (;;) filled(100000);
  }
  churn(static_cast<std::size_t>(std::atoi(argv[2])) * mib);
  ok();
}
