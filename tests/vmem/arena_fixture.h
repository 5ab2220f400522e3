// SPDX-License-Identifier: MIT OR Apache-2.0
// Arenas of numbers for tests, destroyed with their scope; a source that counts; what a walk finds.
#pragma once

#include "vmem/arena_list.h"

#include <algorithm>
#include <cerrno>
#include <gtest/gtest.h>
#include <string>
#include <sys/vmem.h>
#include <tuple>
#include <vector>

namespace terrace::vmem {

inline void* at(std::uintptr_t address) { return pointer_to(address); }

/// An arena that is whole, and empty, at the end of its scope.
class OwnArena {
 public:
  explicit OwnArena(vmem_t* vmp) : vmp_(vmp) { EXPECT_NE(vmp, nullptr); }
  OwnArena(std::uintptr_t base, std::size_t size, std::size_t quantum, std::size_t qcache_max = 0)
      : OwnArena(vmem_create("test", at(base), size, quantum, nullptr, nullptr, nullptr, qcache_max, VM_NOSLEEP)) {}
  ~OwnArena() {
    if (vmp_ == nullptr) return;
    EXPECT_STREQ(arena().check_invariants(), nullptr);
    EXPECT_EQ(arena().statistics().in_use, arena().statistics().cached) << "the test has left something allocated";
    vmem_destroy(vmp_);
  }
  OwnArena(const OwnArena&) = delete;
  OwnArena& operator=(const OwnArena&) = delete;

  operator vmem_t*() const { return vmp_; }
  Arena& arena() const { return arena_of(vmp_); }

  /// 0 when there is none.
  std::uintptr_t alloc(std::size_t size, int flags = VM_NOSLEEP) const { return address_of(vmem_alloc(vmp_, size, flags)); }
  void free(std::uintptr_t address, std::size_t size) const { vmem_free(vmp_, at(address), size); }

 private:
  vmem_t* const vmp_;
};

struct Found {
  std::uintptr_t start;
  std::size_t size;
  bool operator==(const Found& other) const = default;
  bool operator<(const Found& other) const { return std::tie(start, size) < std::tie(other.start, other.size); }
};
inline void PrintTo(const Found& f, std::ostream* out) { *out << f.start << "+" << f.size; }

inline std::vector<Found> walked(vmem_t* vmp, unsigned types) {
  std::vector<Found> all;
  vmem_walk(
      vmp, static_cast<int>(types),
      [](void* list, void* start, std::size_t size) {
        static_cast<std::vector<Found>*>(list)->push_back({address_of(start), size});
      },
      &all);
  return all;
}

/// A source that hands out ranges one behind the other, with a gap, and remembers them. One thread's.
struct CountingSource {
  std::uintptr_t next = 0x100000;
  std::size_t left = ~std::size_t{0};  // bytes that it still gives
  std::vector<Found> given;            // and not taken back
  std::size_t takes = 0, gives = 0;
  int flags = 0;  // of the last call

  static CountingSource& of(vmem_t* source) { return *reinterpret_cast<CountingSource*>(source); }
  static void* take(vmem_t* source, std::size_t size, int vmflag) {
    CountingSource& self = of(source);
    ++self.takes;
    self.flags = vmflag;
    if (size > self.left) return nullptr;
    self.left -= size;
    self.given.push_back({self.next, size});
    self.next += size + 0x100000;
    return at(self.given.back().start);
  }
  static void give(vmem_t* source, void* start, std::size_t size) {
    CountingSource& self = of(source);
    ++self.gives;
    self.left += size;
    const auto found = std::find(self.given.begin(), self.given.end(), Found{address_of(start), size});
    ASSERT_NE(found, self.given.end()) << "a range that it has not given";
    self.given.erase(found);
  }
  vmem_t* handle() { return reinterpret_cast<vmem_t*>(this); }
  vmem_t* importer(std::size_t quantum, std::size_t qcache_max = 0, vmem_free_t* ffunc = give) {
    return vmem_create("importer", nullptr, 0, quantum, take, ffunc, handle(), qcache_max, VM_NOSLEEP);
  }
};

}  // namespace terrace::vmem
