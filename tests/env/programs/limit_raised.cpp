// SPDX-License-Identifier: MIT OR Apache-2.0
// A limit of addresses is reached with blocks that come from slabs of several granules, and raised. While memory is short
// single blocks are taken; later ones come from slabs again, which take few more addresses than their blocks.
#include "env_test.h"

#include <fcntl.h>
#include <sys/resource.h>

using namespace env_test;  // NOLINT(google-build-using-namespace): a program

namespace {

constexpr std::size_t size = 20'000, mib = std::size_t{1} << 20;

std::size_t addresses() {
  char text[128] = {};
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  check(fd >= 0 && read(fd, text, sizeof text - 1) > 0, "/proc/self/statm");
  close(fd);
  return std::strtoull(text, nullptr, 10) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

int main() {
  rlimit limit{};
  check(getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur >= 1024 * mib, "a limit of addresses is set");
  const rlimit low{.rlim_cur = 256 * mib, .rlim_max = limit.rlim_max};
  check(setrlimit(RLIMIT_AS, &low) == 0, "setrlimit");
  std::size_t count = 0;
  while (opaque(std::malloc(size)) != nullptr) ++count;
  check(count * size >= 192 * mib, "less memory than there should be");
  check(opaque(std::malloc(size)) == nullptr, "there was memory after all");
  check(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  const std::size_t before = addresses();
  for (count = 0; count < 5000; ++count) check(opaque(std::malloc(size)) != nullptr, "no memory below the limit");
  check(addresses() - before <= count * size / 2 * 3, "blocks after a refusal take many more addresses than they have bytes");
  ok();
}
