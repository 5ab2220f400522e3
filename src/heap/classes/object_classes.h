// SPDX-License-Identifier: MIT OR Apache-2.0
// Classes of object caches. A class is made while the program runs. Its number is above those of the size classes, and every
// level treats both kinds alike. All slabs of object caches have one value in the page map; the span's record names the class.
//
// Blocks of a class may be prepared: a block that leaves a slab is raw, its owner constructs it, and a block in a magazine
// stays constructed. The owner destructs it before it returns to its slab. Such blocks leave their slab one by one, on request,
// so none is constructed in advance. A destructor is a function of the program and must not run inside malloc; so these classes
// have chunks of their own, which malloc's maintenance skips.
#pragma once

#include "base/described.h"
#include "heap/classes/placement.h"
#include "heap/classes/size_class.h"
#include "heap/classes/transfer_counters.h"
#include "heap/classes/transfer_sizes.h"
#include "os/mutex.h"

#include <array>
#include <atomic>

namespace terrace::heap {

/// Called when a block was freed twice.
constexpr const char* function_that_frees(HomeClass h) noexcept { return is_object(h) ? "umem_cache_free" : "free"; }

struct ObjectRule {
  static constexpr std::size_t largest = SizeRule::largest;  // bytes; beyond, objects are large blocks
  static constexpr std::size_t largest_alignment = SizeRule::largest_alignment;
};

struct ObjectClass {
  /// Destructs a block that returns to its slab. Any thread calls it; it holds no lock but that of maintenance.
  using Undo = void (*)(void* owner, void* block);

  Shape shape;  // never changes once the class is open, unless all numbers have been used
  TransferSize transfer;
  std::uint32_t align;
  std::size_t bytes;       // that a block counts in the budgets
  std::atomic<bool> open;  // shape and transfer are set
  bool exists;             // a cache uses the number; guarded by the lock of BlockLevels
  Undo undo;               // null: no destructor
  void* owner;             // of undo
  bool prepared;           // blocks in magazines are not as they come from the slab
  TransferCounters transfers;
  SharedCounter refills, spills;
  std::atomic<std::uint64_t> armed;  // pops that the slots' counters run through before they are 0: see level::Slot::popped
  // Number of threads that carry blocks of the class to the slabs, outside of all levels and locks. Raised under the lock of
  // maintenance; removal of the class waits until it is 0.
  std::atomic<unsigned> on_the_way;
};

class ObjectClasses {
 public:
  struct Wanted {
    std::size_t size;   // bytes, 1 to ObjectRule::largest
    std::size_t align;  // a power of two up to ObjectRule::largest_alignment; blocks lie at multiples of it
    bool prepared;
    ObjectClass::Undo undo;
    void* owner;
    std::size_t stands_for = 0;  // bytes beside the block that live as long as it does
  };

  ObjectClass& operator[](SizeClass c) noexcept { return at(number(c)); }
  ObjectClass& operator[](HomeClass h) noexcept { return at(number(h)); }
  static unsigned number(HomeClass h) noexcept { return static_cast<unsigned>(index(h) - first_object_class); }
  static unsigned number(SizeClass c) noexcept { return static_cast<unsigned>(index(c) - first_object_class); }
  static unsigned chunk(HomeClass h) noexcept { return number(h) / level::objects_per_chunk; }
  static unsigned within(HomeClass h) noexcept { return number(h) % level::objects_per_chunk; }
  static HomeClass home(unsigned number) noexcept { return home_at(first_object_class + number); }

  /// Number of chunks that every level has opened; a reader may use them.
  unsigned chunks() const noexcept { return chunks_.load(std::memory_order_acquire); }  // [O1] pairs with publish()

  // By BlockLevels, under its lock:
  /// An unused class number, preferably of the same shape, so that a concurrent reader of the class sees no change. It may be
  /// the first of a chunk that is not open yet. `most`: all are in use.
  unsigned find_free(const Wanted& wanted) const noexcept;
  bool is_prepared(unsigned chunk) const noexcept { return prepared_[chunk]; }
  /// Maps a chunk's classes. False: there is no memory.
  bool open_chunk(unsigned chunk, bool prepared) noexcept;
  void publish(unsigned chunks) noexcept { chunks_.store(chunks, std::memory_order_release); }  // [O1]
  HomeClass fill(unsigned number, const Wanted& wanted) noexcept;
  static constexpr unsigned most = level::objects_per_chunk * level::most_object_chunks;

  /// Calls body(h) for each class that exists, or once did.
  template <class Body>
  void for_each(Body body) noexcept {
    for (unsigned n = 0, end = chunks() * level::objects_per_chunk; n < end; ++n) {
      if (at(n).open.load(std::memory_order_acquire)) body(home(n));  // [O2] pairs with fill()
    }
  }

 private:
  friend struct introspect::Layout;
  ObjectClass& at(unsigned number) noexcept {
    return classes_[number / level::objects_per_chunk][number % level::objects_per_chunk];
  }
  const ObjectClass& at(unsigned number) const noexcept {
    return classes_[number / level::objects_per_chunk][number % level::objects_per_chunk];
  }

  std::array<ObjectClass*, level::most_object_chunks> classes_{};
  std::array<bool, level::most_object_chunks> prepared_{};
  std::atomic<unsigned> chunks_{0};
};

extern ObjectClasses object_classes __attribute__((visibility("hidden")));

}  // namespace terrace::heap
