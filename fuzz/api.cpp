// SPDX-License-Identifier: MIT OR Apache-2.0
// The whole malloc interface as a state machine: each byte of input is an operation on one of 64 places. The reference is
// trivial: a place remembers the size that was asked for and the bytes that were written. The heap lives on from input to
// input, so later inputs meet what earlier ones left.
#include "bytes.h"
#include "terrace/malloc.h"
#include "terrace/stats.h"

#include <bit>
#include <cerrno>
#include <cstring>

namespace {

using fuzz::Bytes;

constexpr std::size_t places = 64;
constexpr std::size_t written_at_most = 4096;  // at each end of a block

struct Place {
  unsigned char* block = nullptr;
  std::size_t size = 0;
  std::size_t alignment = 16;
  unsigned char stamp = 0;
};

class Machine {
 public:
  explicit Machine(Bytes input) : input_(input) {}

  void run() {
    while (!input_.empty()) step();
    for (Place& p : all_) release(p);
  }

 private:
  Place& place() { return all_[input_.byte() % places]; }

  // Sizes of all magnitudes: a class of a bit length and two bytes within; the highest ones are more than there is.
  std::size_t size() {
    const unsigned kind = input_.byte();
    if (kind < 160) return input_.number() % 2100;
    if (kind < 230) return input_.number() * 3 + 1;
    if (kind < 250) return std::size_t{input_.number()} * 67 + 131000;
    if (kind < 252) return (std::size_t{1} << (21 + input_.byte() % 6)) + input_.number();
    return ~std::size_t{0} - (input_.number() << (input_.byte() % 40));
  }

  static bool possible(std::size_t size) { return size < std::size_t{1} << 40; }

  void step() {
    const unsigned operation = input_.byte() % 16;
    Place& p = place();
    switch (operation) {
      case 0 ... 3: return fresh(p, size(), 16, [](std::size_t n, std::size_t) { return terrace_malloc(n); });
      case 4 ... 5: return zeroed(p);
      case 6 ... 7: return aligned(p);
      case 8 ... 9: return resize(p);
      case 10: return check(p);
      case 11: return sized(p);
      case 12: return rare(p);
      default: return release(p);
    }
  }

  template <class Allocate>
  void fresh(Place& p, std::size_t size, std::size_t alignment, Allocate allocate) {
    release(p);
    errno = 0;
    auto* const block = static_cast<unsigned char*>(allocate(size, alignment));
    if (block == nullptr) {
      FUZZ_CHECK(errno == ENOMEM && size > std::size_t{1} << 30);
      return;
    }
    FUZZ_CHECK(possible(size));
    p = {.block = block, .size = size, .alignment = alignment, .stamp = next_stamp_++};
    FUZZ_CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    FUZZ_CHECK(terrace_malloc_usable_size(block) >= size);
    no_overlap(p);
    stamp(p);
  }

  void zeroed(Place& p) {
    const std::size_t bytes = size(), count = 1 + input_.byte() % 9;
    if (!possible(bytes)) {
      FUZZ_CHECK(terrace_calloc(count + 1, bytes) == nullptr && errno == ENOMEM);
      return;
    }
    fresh(p, bytes / count * count, 16, [=, this](std::size_t n, std::size_t) {
      void* const block = terrace_calloc(count, n / count);
      if (block != nullptr) FUZZ_CHECK(all_zero(static_cast<unsigned char*>(block), n));
      return block;
    });
  }

  static bool all_zero(const unsigned char* bytes, std::size_t n) {
    return n == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, n - 1) == 0);
  }

  void aligned(Place& p) {
    const std::size_t bytes = size(), alignment = std::size_t{16} << input_.byte() % 18;
    if ((input_.byte() & 1) != 0) {
      return fresh(p, bytes, alignment, [](std::size_t n, std::size_t a) { return terrace_aligned_alloc(a, n); });
    }
    fresh(p, bytes, alignment, [](std::size_t n, std::size_t a) {
      void* block = nullptr;
      const int error = terrace_posix_memalign(&block, a, n);
      if (error != 0) errno = error;
      return error == 0 ? block : nullptr;
    });
  }

  void resize(Place& p) {
    const std::size_t bytes = size();
    check(p);
    errno = 0;
    auto* const block = static_cast<unsigned char*>(terrace_realloc(p.block, bytes));
    if (block == nullptr) {
      if (p.block != nullptr && bytes == 0) {
        p = {};
        return;
      }
      FUZZ_CHECK(errno == ENOMEM && bytes > std::size_t{1} << 30);
      return check(p);
    }
    const Place before = p;
    p.block = block;
    p.size = before.size < bytes ? before.size : bytes;
    if (before.block != nullptr) check_start(p);  // of the tail, only what was at the same place is left
    p = {.block = block, .size = bytes, .alignment = 16, .stamp = next_stamp_++};
    FUZZ_CHECK(terrace_malloc_usable_size(block) >= bytes);
    no_overlap(p);
    stamp(p);
  }

  void sized(Place& p) {
    check(p);
    if (p.block == nullptr) return;
    if (p.alignment == 16) {
      terrace_free_sized(p.block, p.size);
    } else {
      terrace_free_aligned_sized(p.block, p.alignment, p.size);
    }
    p = {};
  }

  void rare(Place& p) {
    static char text[1 << 18];
    switch (input_.byte() % 4) {
      case 0: terrace_malloc_trim(0); break;
      case 1: FUZZ_CHECK(terrace_stats_json(text, sizeof text) < sizeof text); break;
      case 2: FUZZ_CHECK(terrace_reallocarray(p.block, ~std::size_t{0} / 2, 3) == nullptr && errno == ENOMEM); break;
      default: FUZZ_CHECK(terrace_aligned_alloc(48, 1) == nullptr && errno == EINVAL); break;
    }
    check(p);
  }

  void release(Place& p) {
    check(p);
    terrace_free(p.block);
    p = {};
  }

  void stamp(const Place& p) {
    const std::size_t n = p.size < written_at_most ? p.size : written_at_most;
    std::memset(p.block, p.stamp, n);
    std::memset(p.block + p.size - n, p.stamp, n);
  }
  static bool all_stamp(const unsigned char* bytes, std::size_t n, unsigned char stamp) {
    return n == 0 || (bytes[0] == stamp && std::memcmp(bytes, bytes + 1, n - 1) == 0);
  }
  static void check_start(const Place& p) {
    FUZZ_CHECK(all_stamp(p.block, p.size < written_at_most ? p.size : written_at_most, p.stamp));
  }
  static void check(const Place& p) {
    if (p.block == nullptr) return;
    check_start(p);
    const std::size_t n = p.size < written_at_most ? p.size : written_at_most;
    FUZZ_CHECK(all_stamp(p.block + p.size - n, n, p.stamp));
  }

  void no_overlap(const Place& fresh) {
    const std::size_t length = terrace_malloc_usable_size(fresh.block);
    for (const Place& p : all_) {
      if (&p == &fresh || p.block == nullptr) continue;
      FUZZ_CHECK(p.block + (p.size == 0 ? 1 : p.size) <= fresh.block || fresh.block + length <= p.block);
    }
  }

  Bytes input_;
  Place all_[places];
  unsigned char next_stamp_ = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Machine(Bytes(data, size)).run();
  return 0;
}
