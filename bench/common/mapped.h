// SPDX-License-Identifier: MIT OR Apache-2.0
// An array straight from the kernel: the tables of a program must be neither work nor memory of the allocator it measures.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace bench {

template <typename T>
class Mapped {
 public:
  explicit Mapped(std::size_t count) : count_(count) {
    void* const area = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) {
      std::perror("no memory for a table");
      std::exit(1);
    }
    first_ = static_cast<T*>(area);
    for (std::size_t i = 0; i < count; ++i) new (first_ + i) T();
  }
  ~Mapped() {
    for (T& t : *this) t.~T();
    munmap(first_, bytes());
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  T& operator[](std::size_t i) { return first_[i]; }
  const T& operator[](std::size_t i) const { return first_[i]; }
  T* begin() { return first_; }
  T* end() { return first_ + count_; }
  const T* begin() const { return first_; }
  const T* end() const { return first_ + count_; }
  std::size_t size() const { return count_; }

 private:
  std::size_t bytes() const { return (count_ > 0 ? count_ : 1) * sizeof(T); }

  T* first_ = nullptr;
  std::size_t count_;
};

}  // namespace bench
