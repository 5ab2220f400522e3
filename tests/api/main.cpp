// SPDX-License-Identifier: MIT OR Apache-2.0
// What malloc and its relatives promise (ISO C, POSIX, glibc's manual), asked of whichever allocator the program runs on.
#include "as_asked.h"

#include <gtest/gtest.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const int status = api::status_unless_as_asked()) return status;
  std::printf("allocator: %s\n", api::is_terrace() ? api::rung() : "not Terrace");
  return RUN_ALL_TESTS();
}
