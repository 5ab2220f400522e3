// SPDX-License-Identifier: MIT OR Apache-2.0
// Addresses inside of objects that are freed: which are found at once, and that the others are found.
#include "umem.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>

namespace {

constexpr const char* told = "umem_cache_free\\(\\)";

class InteriorDeathTest : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "fast";
    // A second one, so that the first has neighbours in use.
    for (char*& object : objects_) object = static_cast<char*>(umem_cache_alloc(cache_, UMEM_NOFAIL));
  }
  void TearDown() override {
    for (char* object : objects_) umem_cache_free(cache_, object);
    umem_cache_destroy(cache_);
  }
  static bool looks_at_all() {
    const char* const rung = std::getenv("TERRACE_RUNG");
    return rung != nullptr && std::string(rung) == "thread";
  }

  umem_cache_t* cache_ =
      umem_cache_create(const_cast<char*>("interior"), GetParam(), 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0);
  char* objects_[2] = {};
};

std::size_t unit_of(std::size_t size) {
  const std::size_t stride = size <= 8 ? 8 : (size + 15) / 16 * 16;
  return stride & (~stride + 1);
}

TEST_P(InteriorDeathTest, what_no_object_can_be_at_is_told_at_once) {
  for (std::size_t at = 1; at < GetParam(); at = at < 64 ? at + 1 : at * 2 - 1) {
    if (at % (unit_of(GetParam()) < 64 ? unit_of(GetParam()) : 64) == 0) continue;
    EXPECT_DEATH(umem_cache_free(cache_, objects_[0] + at), told) << at;
  }
}

TEST_P(InteriorDeathTest, what_is_taken_is_told_when_it_goes_back_to_its_slab) {
  for (std::size_t at = unit_of(GetParam()); at < GetParam(); at *= 2) {
    const auto free_and_destroy = [&] {
      umem_cache_free(cache_, objects_[0] + at);
      umem_cache_destroy(cache_);
    };
    EXPECT_DEATH(free_and_destroy(), looks_at_all() ? told : "\\(\\): ") << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, InteriorDeathTest, testing::Values(8, 24, 100, 128, 200, 1000, 4096, 100000));

TEST(InteriorDeathTest, of_memory_by_size_as_of_free) {
  char* const p = static_cast<char*>(umem_alloc(100, UMEM_NOFAIL));
  for (const int at : {1, 4, 8, 12}) EXPECT_DEATH(umem_free(p + at, 100), "umem_free|free");
  umem_free(p, 100);
}

}  // namespace
