// SPDX-License-Identifier: MIT OR Apache-2.0
// What differs where malloc is libc's.
#include <cstdlib>
#include <gtest/gtest.h>
#include <umem.h>

namespace {

TEST(UmemDeath, a_block_of_libcs_malloc) {
  void* const p = std::malloc(100);
  EXPECT_DEATH(umem_free(p, 100), "umem_free\\(\\): invalid pointer");
  std::free(p);
}

}  // namespace
