// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/handles.h"

#include "heap/heap.h"
#include "umem/debug.h"
#include "vmem/arena_list.h"

namespace terrace::umem {

using heap::heap;

namespace {

struct Handle {
  void* object;
};

// Large blocks are set aside while they have a handle: who frees one twice is told, and a debugger knows that they wait.
bool are_set_aside(const Cache& c) noexcept { return c.source == nullptr; }

void give_back(void* owner, void* block) noexcept {
  Cache& c = *static_cast<Cache*>(owner);
  void* const object = static_cast<Handle*>(block)->object;
  if (are_set_aside(c)) heap.take_back(object);
  if (is_debugged(c)) {
    forget_object(&c, object);
  } else if (c.destruct != nullptr) {
    c.destruct(object, c.private_data);
  }
  free_apart(c, object);
}

void* allocate_memory(const Cache& c) noexcept {
  const std::size_t bytes = bytes_of(c);
  if (c.source != nullptr) {
    const std::size_t align = max_of(c.align, vmem::arena_of(c.source).quantum());
    return vmem_xalloc(c.source, bytes, align, 0, 0, nullptr, nullptr, VM_NOSLEEP);
  }
  return heap.allocate_plain(bytes, c.align);
}

}  // namespace

// What there is no memory for may be there all the same, in the levels.
void* allocate_apart(Cache& c) noexcept {
  void* const object = allocate_memory(c);
  if (object != nullptr || !c.has_handles) return object;
  heap.drain_objects(c.home);
  return allocate_memory(c);
}

void free_apart(const Cache& c, void* object) noexcept {
  if (c.source != nullptr) return vmem_xfree(c.source, object, bytes_of(c));
  heap.free_plain(object, "umem_cache_free");
}

bool is_large_enough(const Cache& c, const void* object) noexcept {
  return heap.is_plain(object) && heap.plain_size(object) >= bytes_of(c);
}
bool may_be_object(const Cache& c, const void* object) noexcept {
  if (c.source != nullptr) return vmem::arena_of(c.source).has_piece(address_of(object), bytes_of(c));
  return is_large_enough(c, object) || (heap.is_set_aside(object) && heap.large().requested(object) >= bytes_of(c));
}

void make_handles(Cache& c) noexcept {
  c.home = heap.levels().make_objects({.size = sizeof(Handle),
                                       .align = alignof(Handle),
                                       .prepared = true,
                                       .undo = give_back,
                                       .owner = &c,
                                       .stands_for = bytes_of(c)});
  c.has_handles = index(c.home) != 0;
}

void* take_handled(Cache& c) noexcept {
  bool raw = false;
  auto* const handle = static_cast<Handle*>(heap.levels().allocate_object(c.home, raw));
  if (handle == nullptr) return nullptr;
  void* const object = raw ? nullptr : handle->object;
  heap.levels().free_raw(handle);
  if (object != nullptr && are_set_aside(c)) heap.take_back(object);
  return object;
}

bool keep_handled(Cache& c, void* object) noexcept {
  auto* const handle = static_cast<Handle*>(heap.levels().allocate_raw_object(c.home));
  if (handle == nullptr) return false;
  if (are_set_aside(c) && !heap.set_aside(object)) {
    heap.levels().free_raw(handle);
    return false;
  }
  handle->object = object;
  heap.levels().free_object(handle, c.home);
  return true;
}

}  // namespace terrace::umem
