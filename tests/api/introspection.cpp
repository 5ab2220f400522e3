// SPDX-License-Identifier: MIT OR Apache-2.0
// mallinfo, mallinfo2, malloc_info, malloc_stats, mallopt: libc's names only.
#if !defined(TERRACE_TESTS_PREFIXED)

#include "support.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fcntl.h>
#include <limits>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace api {
namespace {

std::string read_all(std::FILE* file) {
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text.push_back(static_cast<char>(c));
  return text;
}

TEST(mallinfo2_, follows_live_bytes) {
  const struct mallinfo2 before = ::mallinfo2();
  std::vector<Owned> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(own(api::malloc(20000)));
  const struct mallinfo2 during = ::mallinfo2();
  blocks.clear();
  api::malloc_trim(0);
  const struct mallinfo2 after = ::mallinfo2();
  EXPECT_GE(during.uordblks + during.hblkhd, before.uordblks + before.hblkhd + 2000000);
  EXPECT_LE(after.uordblks + after.hblkhd + 1900000, during.uordblks + during.hblkhd);
}

TEST(mallinfo2_, follows_large_blocks) {
  const struct mallinfo2 before = ::mallinfo2();
  {
    const Owned p = own(api::malloc(64 * mib));
    const struct mallinfo2 during = ::mallinfo2();
    EXPECT_EQ(during.hblks, before.hblks + 1);
    EXPECT_GE(during.hblkhd, before.hblkhd + 64 * mib);
  }
  const struct mallinfo2 after = ::mallinfo2();
  EXPECT_EQ(after.hblks, before.hblks);
  EXPECT_EQ(after.hblkhd, before.hblkhd);
}

TEST(mallinfo2_, its_parts_add_up) {
  const Owned p = own(api::malloc(1000));
  const struct mallinfo2 m = ::mallinfo2();
  EXPECT_EQ(m.uordblks + m.fordblks, m.arena);
  EXPECT_GT(m.uordblks, 0U);
}

// Each number is read at a time of its own: none may fall below 0, which reads as 16 EiB.
TEST(mallinfo2_, stays_sensible_while_others_allocate_and_fork) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&stop, t] {
      while (!stop.load()) {
        for (std::size_t size : {std::size_t{300000}, std::size_t{40}, std::size_t{3000} + t}) api::free(api::malloc(size));
      }
    });
  }
  constexpr std::size_t sensible = std::size_t{1} << 40;
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  for (int i = 0; i < 3000; ++i) {
    const struct mallinfo2 m = ::mallinfo2();
    for (const std::size_t n : {m.arena, m.hblks, m.hblkhd, m.uordblks, m.fordblks, m.fsmblks, m.keepcost})
      ASSERT_LT(n, sensible);
    if (i % 300 != 0) continue;
    std::rewind(file);
    ASSERT_EQ(::malloc_info(0, file), 0);
    const pid_t child = fork();
    if (child == 0) _exit(::mallinfo2().arena < sensible && ::malloc_info(0, file) == 0 ? 0 : 1);
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  stop.store(true);
  for (std::thread& t : threads) t.join();
  std::fclose(file);
}

TEST(mallinfo_, agrees_with_mallinfo2) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  const struct mallinfo small = ::mallinfo();
#pragma GCC diagnostic pop
  const struct mallinfo2 m = ::mallinfo2();
  const auto near = [](int a, std::size_t b) {
    b = std::min<std::size_t>(b, std::numeric_limits<int>::max());
    return a >= 0 && static_cast<std::size_t>(a) + mib > b && b + mib > static_cast<std::size_t>(a);
  };
  EXPECT_TRUE(near(small.arena, m.arena)) << small.arena << " " << m.arena;
  EXPECT_TRUE(near(small.uordblks, m.uordblks)) << small.uordblks << " " << m.uordblks;
  EXPECT_EQ(static_cast<std::size_t>(small.hblks), m.hblks);
}

TEST(malloc_info_, writes_one_xml_document) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(::malloc_info(0, file), 0);
  const std::string text = read_all(file);
  std::fclose(file);
  EXPECT_EQ(text.rfind("<malloc version=\"1\">", 0), 0U) << text;
  EXPECT_NE(text.find("</malloc>\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("</malloc>\n") + 10, text.size()) << text;
}

TEST(malloc_info_, into_a_stream_that_allocates_itself) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const file = ::open_memstream(&text, &size);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(::malloc_info(0, file), 0);
  std::fclose(file);
  EXPECT_GT(size, 20U);
  api::free(text);
}

TEST(malloc_info_, refuses_options) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(::malloc_info(1, file), EINVAL);
  EXPECT_EQ(read_all(file), "");
  std::fclose(file);
}

TEST(malloc_stats_, writes_to_standard_error) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  ASSERT_GE(dup2(fileno(file), STDERR_FILENO), 0);
  ::malloc_stats();
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  const std::string text = read_all(file);
  std::fclose(file);
  EXPECT_GT(text.size(), 20U) << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST(mallopt_, takes_every_parameter_of_the_manual) {
  for (const auto& [parameter, value] : {std::pair{M_MXFAST, 64},
                                         {M_TRIM_THRESHOLD, 1 << 20},
                                         {M_TOP_PAD, 65536},
                                         {M_MMAP_THRESHOLD, 1 << 20},
                                         {M_MMAP_MAX, 1000},
                                         {M_CHECK_ACTION, 3},
                                         {M_PERTURB, 0},
                                         {M_ARENA_TEST, 8},
                                         {M_ARENA_MAX, 8}}) {
    EXPECT_EQ(::mallopt(parameter, value), 1) << parameter;
  }
  const Owned p = own(api::malloc(100));
  EXPECT_NE(p, nullptr);
}

TEST(cfree_, frees_where_there_is_one) {
  auto* const cfree = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_DEFAULT, "cfree"));
  if (cfree == nullptr) GTEST_SKIP() << "gone from glibc since 2.26";
  cfree(api::malloc(100));
  cfree(nullptr);
}

// The names are one allocator: what one gives, all others take.
TEST(all_names, give_blocks_that_free_takes) {
  api::free(::operator new(100));
  api::free(opaque(::strdup("a string that libc allocates")));
  ::operator delete(api::malloc(100));
  api::free(opaque(::realpath("/", nullptr)));
}

TEST(all_names, are_those_of_one_object) {
  if (!is_terrace()) GTEST_SKIP();
  Dl_info of_rung = {};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "terrace_rung"), &of_rung), 0);
  for (const char* name : {"malloc",
                           "free",
                           "calloc",
                           "realloc",
                           "reallocarray",
                           "aligned_alloc",
                           "posix_memalign",
                           "memalign",
                           "valloc",
                           "pvalloc",
                           "malloc_usable_size",
                           "malloc_trim",
                           "mallinfo",
                           "mallinfo2",
                           "malloc_info",
                           "malloc_stats",
                           "mallopt",
                           "free_sized",
                           "free_aligned_sized",
                           "_Znwm",
                           "_Znam",
                           "_ZnwmRKSt9nothrow_t",
                           "_ZnamRKSt9nothrow_t",
                           "_ZnwmSt11align_val_t",
                           "_ZnamSt11align_val_t",
                           "_ZnwmSt11align_val_tRKSt9nothrow_t",
                           "_ZnamSt11align_val_tRKSt9nothrow_t",
                           "_ZdlPv",
                           "_ZdaPv",
                           "_ZdlPvm",
                           "_ZdaPvm",
                           "_ZdlPvRKSt9nothrow_t",
                           "_ZdaPvRKSt9nothrow_t",
                           "_ZdlPvSt11align_val_t",
                           "_ZdaPvSt11align_val_t",
                           "_ZdlPvmSt11align_val_t",
                           "_ZdaPvmSt11align_val_t",
                           "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                           "_ZdaPvSt11align_val_tRKSt9nothrow_t"}) {
    void* const f = dlsym(RTLD_DEFAULT, name);
    ASSERT_NE(f, nullptr) << name;
    Dl_info of_this = {};
    ASSERT_NE(dladdr(f, &of_this), 0) << name;
    EXPECT_STREQ(of_this.dli_fname, of_rung.dli_fname) << name;
  }
}

}  // namespace
}  // namespace api

#endif
