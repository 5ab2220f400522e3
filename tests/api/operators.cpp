// SPDX-License-Identifier: MIT OR Apache-2.0
// The replaceable operators of C++, called as functions: a new-expression may be optimised away. libc's names only.
#if !defined(TERRACE_TESTS_PREFIXED)

#include "support.h"

#include <new>

namespace api {
namespace {

using std::align_val_t;
using std::nothrow;

// Below the limits of the other tests, so that the compiler does not warn; as impossible.
const std::size_t impossible = opaque(SIZE_MAX / 2 - 100);

class Operators : public ::testing::Test {
 protected:
  void TearDown() override { std::set_new_handler(nullptr); }
};

int handler_calls = 0;

struct FromHandler {};

void throwing_handler() {
  ++handler_calls;
  throw FromHandler{};
}
void bad_alloc_handler() {
  ++handler_calls;
  throw std::bad_alloc();
}
void handler_that_gives_up_at_the_third_call() {
  if (++handler_calls == 3) std::set_new_handler(nullptr);
}

TEST_F(Operators, every_pair_allocates_and_frees) {
  for (const std::size_t size : boundary_sizes(mib)) {
    ::operator delete(opaque(::operator new(size)));
    ::operator delete[](opaque(::operator new[](size)));
    ::operator delete(opaque(::operator new(size)), size);
    ::operator delete[](opaque(::operator new[](size)), size);
    ::operator delete(opaque(::operator new(size, nothrow)), nothrow);
    ::operator delete[](opaque(::operator new[](size, nothrow)), nothrow);
  }
}

void check_aligned(void* p, std::size_t size, std::size_t alignment) {
  ASSERT_NE(p, nullptr);
  ASSERT_TRUE(is_aligned(p, alignment)) << alignment;
  fill(p, size, 1);
}

TEST_F(Operators, every_aligned_pair_allocates_and_frees) {
  for (std::size_t alignment = 1; alignment <= mib; alignment *= 2) {
    const align_val_t a{alignment};
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{3000}, 100 * kib}) {
      void* p = opaque(::operator new(size, a));
      ASSERT_NO_FATAL_FAILURE(check_aligned(p, size, alignment));
      ::operator delete(p, a);
      p = opaque(::operator new[](size, a));
      ASSERT_NO_FATAL_FAILURE(check_aligned(p, size, alignment));
      ::operator delete[](p, a);
      p = opaque(::operator new(size, a));
      ::operator delete(p, size, a);
      p = opaque(::operator new[](size, a));
      ::operator delete[](p, size, a);
      p = opaque(::operator new(size, a, nothrow));
      ASSERT_NO_FATAL_FAILURE(check_aligned(p, size, alignment));
      ::operator delete(p, a, nothrow);
      p = opaque(::operator new[](size, a, nothrow));
      ASSERT_NO_FATAL_FAILURE(check_aligned(p, size, alignment));
      ::operator delete[](p, a, nothrow);
    }
  }
}

TEST_F(Operators, new_of_zero_bytes_gives_unique_blocks) {
  void* const a = opaque(::operator new(0));
  void* const b = opaque(::operator new(0));
  EXPECT_NE(a, nullptr);
  EXPECT_NE(a, b);
  ::operator delete(a);
  ::operator delete(b);
}

TEST_F(Operators, delete_of_null_does_nothing) {
  const auto null = [] { return opaque(static_cast<void*>(nullptr)); };
  ::operator delete(null());
  ::operator delete[](null());
  ::operator delete(null(), 8);
  ::operator delete[](null(), 8);
  ::operator delete(null(), nothrow);
  ::operator delete[](null(), nothrow);
  ::operator delete (null(), align_val_t{64});
  ::operator delete[](null(), align_val_t{64});
  ::operator delete (null(), 8, align_val_t{64});
  ::operator delete[](null(), 8, align_val_t{64});
  ::operator delete (null(), align_val_t{64}, nothrow);
  ::operator delete[](null(), align_val_t{64}, nothrow);
}

// libstdc++ 12 rounds the size up to the alignment without a look at overflow, so the largest sizes are small ones there.
bool has_meaning_aligned(std::size_t size) { return is_terrace() || size <= SIZE_MAX - 64; }

TEST_F(Operators, new_of_an_impossible_size_throws_bad_alloc) {
  for (const std::size_t size : impossible_sizes()) {
    EXPECT_THROW(opaque(::operator new(size)), std::bad_alloc) << size;
    EXPECT_THROW(opaque(::operator new[](size)), std::bad_alloc) << size;
    if (!has_meaning_aligned(size)) continue;
    EXPECT_THROW(opaque(::operator new (size, align_val_t{64})), std::bad_alloc) << size;
    EXPECT_THROW(opaque(::operator new[](size, align_val_t{64})), std::bad_alloc) << size;
  }
}

TEST_F(Operators, nothrow_new_of_an_impossible_size_gives_null) {
  for (const std::size_t size : impossible_sizes()) {
    EXPECT_EQ(opaque(::operator new(size, nothrow)), nullptr) << size;
    EXPECT_EQ(opaque(::operator new[](size, nothrow)), nullptr) << size;
    if (!has_meaning_aligned(size)) continue;
    EXPECT_EQ(opaque(::operator new (size, align_val_t{64}, nothrow)), nullptr) << size;
    EXPECT_EQ(opaque(::operator new[](size, align_val_t{64}, nothrow)), nullptr) << size;
  }
}

TEST_F(Operators, new_expressions_throw_through_frames_with_destructors) {
  int destroyed = 0;
  struct Guard {
    int* count;
    ~Guard() { ++*count; }
  };
  try {
    const Guard outer{&destroyed};
    const std::unique_ptr<char[]> p(new char[impossible]);
    FAIL() << "got " << static_cast<void*>(p.get());
  } catch (const std::bad_alloc&) {
    ++destroyed;
  }
  EXPECT_EQ(destroyed, 2);
  EXPECT_EQ(opaque(new (nothrow) char[impossible]), nullptr);
}

TEST_F(Operators, standard_containers_survive_bad_alloc) {
  std::vector<char> v(100, 'x');
  EXPECT_THROW(v.reserve(impossible), std::bad_alloc);
  EXPECT_EQ(v, std::vector<char>(100, 'x'));
}

TEST_F(Operators, new_calls_the_handler_and_passes_its_exception_on) {
  std::set_new_handler(throwing_handler);
  handler_calls = 0;
  EXPECT_THROW(opaque(::operator new(impossible)), FromHandler);
  EXPECT_THROW(opaque(::operator new[](impossible)), FromHandler);
  EXPECT_THROW(opaque(::operator new (impossible, align_val_t{64})), FromHandler);
  EXPECT_THROW(opaque(::operator new[](impossible, align_val_t{64})), FromHandler);
  EXPECT_EQ(handler_calls, 4);
}

TEST_F(Operators, new_calls_the_handler_until_there_is_none) {
  const auto fails_after_three = [](auto&& allocate) {
    handler_calls = 0;
    std::set_new_handler(handler_that_gives_up_at_the_third_call);
    EXPECT_THROW(allocate(), std::bad_alloc);
    EXPECT_EQ(handler_calls, 3);
  };
  fails_after_three([] { return opaque(::operator new(impossible)); });
  fails_after_three([] { return opaque(::operator new[](impossible)); });
  fails_after_three([] { return opaque(::operator new (impossible, align_val_t{64})); });
  fails_after_three([] { return opaque(::operator new[](impossible, align_val_t{64})); });
}

TEST_F(Operators, nothrow_new_calls_the_handler_until_there_is_none) {
  const auto fails_after_three = [](auto&& allocate) {
    handler_calls = 0;
    std::set_new_handler(handler_that_gives_up_at_the_third_call);
    EXPECT_EQ(allocate(), nullptr);
    EXPECT_EQ(handler_calls, 3);
  };
  fails_after_three([] { return opaque(::operator new(impossible, nothrow)); });
  fails_after_three([] { return opaque(::operator new[](impossible, nothrow)); });
  fails_after_three([] { return opaque(::operator new (impossible, align_val_t{64}, nothrow)); });
  fails_after_three([] { return opaque(::operator new[](impossible, align_val_t{64}, nothrow)); });
}

// [new.delete.single]: a handler may end its work by throwing bad_alloc; then the nothrow forms return null.
TEST_F(Operators, nothrow_new_gives_null_when_the_handler_throws_bad_alloc) {
  std::set_new_handler(bad_alloc_handler);
  handler_calls = 0;
  EXPECT_EQ(opaque(::operator new(impossible, nothrow)), nullptr);
  EXPECT_EQ(opaque(::operator new[](impossible, nothrow)), nullptr);
  EXPECT_EQ(opaque(::operator new (impossible, align_val_t{64}, nothrow)), nullptr);
  EXPECT_EQ(opaque(::operator new[](impossible, align_val_t{64}, nothrow)), nullptr);
  EXPECT_EQ(handler_calls, 4);
}

TEST_F(Operators, malloc_does_not_call_the_handler) {
  std::set_new_handler(throwing_handler);
  handler_calls = 0;
  EXPECT_EQ(api::malloc(impossible), nullptr);
  EXPECT_EQ(handler_calls, 0);
}

}  // namespace
}  // namespace api

#endif
