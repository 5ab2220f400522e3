// SPDX-License-Identifier: MIT OR Apache-2.0
// The names that libc exports its own malloc by. Wrappers that define malloc themselves call them, and so do old libraries; a
// block from one name may be freed by any other.
#include "support.h"

#if !defined(TERRACE_TESTS_PREFIXED)

namespace api {
namespace {

template <class F>
F* find(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

using Free = void(void*);

// With every pair of names. Some libcs have none of these.
void check_block(void* p, std::size_t size) {
  ASSERT_NE(p, nullptr);
  EXPECT_GE(api::malloc_usable_size(p), size);
  fill(p, size, 1);
  EXPECT_EQ(first_difference(p, size, 1), size);
}

void free_by_both(void* p, void* q) {
  api::free(p);
  if (auto* const f = find<Free>("__libc_free")) {
    f(q);
  } else {
    api::free(q);
  }
}

TEST(libc_names, give_blocks_that_any_name_frees) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{5000}, std::size_t{300000}}) {
    for (const char* name : {"__libc_malloc", "__libc_valloc", "__libc_pvalloc"}) {
      auto* const f = find<void*(std::size_t)>(name);
      if (f == nullptr) continue;
      void* const p = opaque(f(size));
      void* const q = opaque(f(size));
      check_block(p, size);
      check_block(q, size);
      free_by_both(p, q);
    }
    if (auto* const f = find<void*(std::size_t, std::size_t)>("__libc_calloc")) {
      void* const p = opaque(f(1, size));
      check_block(p, size);
      free_by_both(p, opaque(f(size, 1)));
    }
    if (auto* const f = find<void*(std::size_t, std::size_t)>("__libc_memalign")) {
      void* const p = opaque(f(256, size));
      check_block(p, size);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0U);
      free_by_both(p, opaque(f(64, size)));
    }
  }
}

TEST(libc_names, realloc_takes_blocks_of_any_name) {
  auto* const f = find<void*(void*, std::size_t)>("__libc_realloc");
  if (f == nullptr) GTEST_SKIP();
  void* p = api::malloc(100);
  fill(p, 100, 3);
  p = opaque(f(p, 5000));
  ASSERT_NE(p, nullptr);
  EXPECT_EQ(first_difference(p, 100, 3), 100U);
  p = api::realloc(p, 50);
  free_by_both(p, opaque(f(nullptr, 70)));
}

TEST(libc_names, all_of_them_are_terraces) {
  if (!is_terrace()) GTEST_SKIP();
  Dl_info ours{};
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "malloc"), &ours), 0);
  for (const char* name : {"__libc_malloc", "__libc_free", "__libc_cfree", "__libc_calloc", "__libc_realloc", "__libc_memalign",
                           "__libc_valloc", "__libc_pvalloc", "__posix_memalign"}) {
    Dl_info found{};
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &found), 0) << name;
    EXPECT_STREQ(found.dli_fname, ours.dli_fname) << name;
  }
}

}  // namespace
}  // namespace api

#endif
