// SPDX-License-Identifier: MIT OR Apache-2.0
// TERRACE_CHECK=1: every call of the program comes here, and from here to the heap. What is looked at, and when:
//
//   free, realloc   the pointer is a live block's start; size and alignment are those that a sized form names; the zones
//   later           a freed block waits in the quarantine, filled; when it leaves, or at a sweep, it must be as it was
//   sweep           at malloc_trim and at exit: the zones of all live blocks, and all that wait
//   at the access   sampled blocks, by guard pages
//
// No lock is held while the heap is called. Ranks: registry, quarantine, pool.
#pragma once

#include "base/described.h"
#include "check/guarded_pool.h"
#include "check/options.h"
#include "check/quarantine.h"
#include "check/registry.h"

namespace terrace::check {

/// What a form of free says of the block; 0: nothing.
struct Claim {
  const char* function = "free";
  std::size_t size = 0;
  bool has_size = false;
  std::size_t align = 0;
};

/// The heap beneath. Its blocks lie at multiples of 16 at least.
struct Source {
  void* (*allocate)(std::size_t size, std::size_t align) noexcept = nullptr;
  void (*release)(void* p) noexcept = nullptr;
  bool (*is_free_again)(const void* p) noexcept = nullptr;  // whether what lies at p was a block's, and is no block's now
};

class Checker {
 public:
  /// Off unless the options and the memory say otherwise.
  void open(const Options& options, const Source& source) noexcept;
  bool on() const noexcept { return on_; }

  // As malloc and friends; align is a power of two. Null: memory is short.
  void* allocate(std::size_t size, std::size_t align) noexcept;
  void free(void* p, const Claim& claim) noexcept;
  void* reallocate(void* p, std::size_t size) noexcept;
  /// What was asked for: no byte more may be used.
  std::size_t usable_size(const void* p, const char* function) noexcept;

  /// Looks at everything; `function` is whom a report names.
  void sweep(const char* function) noexcept;

  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

 private:
  friend struct introspect::Layout;
  void* allocate_beside_zones(std::size_t size, std::size_t align) noexcept;
  Block live_block(const void* p, const Claim& claim, bool free_it) noexcept;
  [[noreturn]] void report_unknown(const char* function, const void* p) noexcept;
  void leave_quarantine(const Quarantine::Freed& freed, const char* function) noexcept;
  void give_back(const Block& block) noexcept;

  bool on_ = false;  // set once, before anybody else can call
  Source source_;
  Registry registry_;
  Quarantine quarantine_;
  GuardedPool pool_;
  bool has_pool_ = false;
};

}  // namespace terrace::check
