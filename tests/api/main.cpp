// SPDX-License-Identifier: MIT OR Apache-2.0
// What malloc and its relatives promise (ISO C, POSIX, glibc's manual), asked of whichever allocator the program runs on.
#include "support.h"

#include <cstdio>
#include <string_view>

namespace {

constexpr int skip_status = 77;

// With a preloaded libterrace.so the tests must really run on it, and on the rung that was asked for. A rung that this kernel does
// not have skips the whole run.
bool runs_on_what_was_asked_for(int& status) {
  const char* const preload = std::getenv("LD_PRELOAD");
  const bool asked_for_terrace = preload != nullptr && std::string_view(preload).find("libterrace") != std::string_view::npos;
  if (asked_for_terrace && !api::is_terrace()) {
    std::fprintf(stderr, "preloaded %s, but its functions are not there\n", preload);
    status = 1;
    return false;
  }
  const char* const rung = std::getenv("TERRACE_RUNG");
  if (rung != nullptr && api::is_terrace() && std::string_view(rung) != api::rung()) {
    std::fprintf(stderr, "rung %s is not to be had here (%s instead)\n", rung, api::rung());
    status = skip_status;
    return false;
  }
  std::printf("allocator: %s\n", api::is_terrace() ? api::rung() : "not Terrace");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int status = 0;
  if (!runs_on_what_was_asked_for(status)) return status;
  return RUN_ALL_TESTS();
}
