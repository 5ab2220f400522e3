// SPDX-License-Identifier: MIT OR Apache-2.0
// What terrace_lab_heap_bytes() and terrace_lab_init() accept and refuse.
#include "fake.h"

#include <cerrno>
#include <functional>

namespace terrace::lab {
namespace {

void* no_source(void*, unsigned, std::size_t, std::size_t, std::size_t*) { return nullptr; }

terrace_lab_config valid() {
  terrace_lab_config c = config_of({2048, 8192, 32768, 65536});
  c.source = no_source;
  return c;
}

struct Case {
  const char* what;
  std::function<void(terrace_lab_config&)> change;
};

bool accepted(const Case& test) {
  terrace_lab_config c = valid();
  test.change(c);
  errno = 0;
  const std::size_t bytes = terrace_lab_heap_bytes(&c);
  EXPECT_EQ(errno, bytes == 0 ? EINVAL : 0) << test.what;
  if (bytes == 0) {
    alignas(128) char never_touched[128];
    errno = 0;
    EXPECT_EQ(terrace_lab_init(never_touched, &c), nullptr) << test.what;
    EXPECT_EQ(errno, EINVAL) << test.what;
  }
  return bytes != 0;
}

constexpr int thread_level = TERRACE_LAB_THREAD, core = TERRACE_LAB_CORE, processor = TERRACE_LAB_PROCESSOR,
              node = TERRACE_LAB_NODE;

TEST(Config, refuses_what_is_none) {
  const Case refused[] = {
      {"another abi", [](auto& c) { c.abi = TERRACE_LAB_ABI + 1; }},
      {"no abi", [](auto& c) { c.abi = 0; }},
      {"no alignment", [](auto& c) { c.alignment = 0; }},
      {"alignment below 8", [](auto& c) { c.alignment = 4; }},
      {"alignment above 4096", [](auto& c) { c.alignment = 8192; }},
      {"alignment no power of two", [](auto& c) { c.alignment = 24; }},
      {"size no multiple", [](auto& c) { c.levels[core].size = 8200; }},
      {"minimum no multiple", [](auto& c) { c.levels[core].min_size = 1000; }},
      {"maximum no multiple",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.levels[core].sizing = TERRACE_LAB_GROWING;
         c.levels[core].max_size = 9000;
       }},
      {"minimum > size", [](auto& c) { c.levels[core].min_size = 8208; }},
      {"size > maximum",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.levels[core].sizing = TERRACE_LAB_DOUBLING;
         c.levels[core].max_size = 4096;
       }},
      {"growing in an unknown space", [](auto& c) { c.levels[thread_level].sizing = TERRACE_LAB_GROWING; }},
      {"doubling in an unknown space", [](auto& c) { c.levels[node].sizing = TERRACE_LAB_DOUBLING; }},
      {"no such sizing", [](auto& c) { c.levels[core].sizing = 3; }},
      {"no such sizing", [](auto& c) { c.levels[core].sizing = -1; }},
      {"restartable below the core", [](auto& c) { c.levels[thread_level].sync = TERRACE_LAB_RESTARTABLE; }},
      {"restartable processor", [](auto& c) { c.levels[processor].sync = TERRACE_LAB_RESTARTABLE; }},
      {"restartable node", [](auto& c) { c.levels[node].sync = TERRACE_LAB_RESTARTABLE; }},
      {"no such synchronisation", [](auto& c) { c.levels[core].sync = 2; }},
      {"by core without cores",
       [](auto& c) {
         c.association = TERRACE_LAB_BY_CORE;
         c.levels[core].size = 0;
       }},
      {"flip without cores",
       [](auto& c) {
         c.association = TERRACE_LAB_FLIP;
         c.levels[core].size = 0;
       }},
      {"auto without cores",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.association = TERRACE_LAB_AUTO;
         c.levels[core].size = 0;
       }},
      {"auto in an unknown space", [](auto& c) { c.association = TERRACE_LAB_AUTO; }},
      {"no such association", [](auto& c) { c.association = 4; }},
      {"no such association", [](auto& c) { c.association = -1; }},
      {"no source", [](auto& c) { c.source = nullptr; }},
      {"stop beyond everything",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.available = [](void*) -> std::size_t { return 0; };
         c.stop_permille = 1001;
       }},
      {"stop, and nobody says what is available",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.stop_permille = 100;
       }},
      {"stop in an unknown space",
       [](auto& c) {
         c.available = [](void*) -> std::size_t { return 0; };
         c.stop_permille = 100;
       }},
      {"fillers that are no multiples",
       [](auto& c) {
         c.alignment = 8;
         c.min_fill = 20;
       }},
      {"fillers too large for a buffer",
       [](auto& c) {
         c.min_fill = 512;
         c.levels[thread_level].min_size = 1008;
       }},
      {"fillers larger than the largest alignment", [](auto& c) { c.min_fill = 8192; }},
      {"boundaries at no power of two", [](auto& c) { c.boundary = 3 << 20; }},
      {"boundaries below the alignment", [](auto& c) { c.boundary = 8; }},
      {"buffers beyond everything",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.buffers_permille = 1001;
       }},
      {"a limit in an unknown space", [](auto& c) { c.buffers_permille = 100; }},
      {"a size whose maximum overflows", [](auto& c) { c.levels[core].size = ~std::size_t{0} / 16 / 16 * 16; }},
  };
  for (const Case& test : refused) EXPECT_FALSE(accepted(test)) << test.what;
}

TEST(Config, accepts_what_is_one) {
  const Case good[] = {
      {"as it is", [](auto&) {}},
      {"least alignment", [](auto& c) { c.alignment = 8; }},
      {"no level", [](auto& c) { c.levels[0].size = c.levels[1].size = c.levels[2].size = c.levels[3].size = 0; }},
      {"longer fillers", [](auto& c) { c.min_fill = 128; }},
      {"boundaries", [](auto& c) { c.boundary = std::size_t{1} << 20; }},
      {"a limit for buffers",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.buffers_permille = 1000;
       }},
      {"restartable core", [](auto& c) { c.levels[core].sync = TERRACE_LAB_RESTARTABLE; }},
      {"by core", [](auto& c) { c.association = TERRACE_LAB_BY_CORE; }},
      {"flip", [](auto& c) { c.association = TERRACE_LAB_FLIP; }},
      {"auto",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.association = TERRACE_LAB_AUTO;
       }},
      {"one size only", [](auto& c) { c.levels[core].min_size = 8192; }},
      {"a fixed size has no maximum", [](auto& c) { c.levels[core].max_size = 8; }},
      {"what a level that is not there says",
       [](auto& c) {
         c.levels[core] = {0, 7, 3, 9, 9};
       }},
      {"growing",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.levels[core].sizing = TERRACE_LAB_GROWING;
       }},
      {"stop",
       [](auto& c) {
         c.young_bytes = 1 << 20;
         c.available = [](void*) -> std::size_t { return 0; };
         c.stop_permille = 1000;
       }},
  };
  for (const Case& test : good) EXPECT_TRUE(accepted(test)) << test.what;
}

TEST(Config, accepts_the_largest_alignment) {
  EXPECT_TRUE(accepted({"pages", [](auto& c) {
                          c.alignment = 4096;
                          for (auto& l : c.levels) l.size = 65536;
                        }}));
}

TEST(Config, is_copied) {
  terrace_lab_config c = config_of({1024, 0, 0, 0});
  Fake fake(c);
  c.levels[0].size = 4096;
  Attached t(fake);
  EXPECT_EQ(terrace_lab_size(fake.heap, &t.lab, TERRACE_LAB_THREAD), 1024U);
}

}  // namespace
}  // namespace terrace::lab
