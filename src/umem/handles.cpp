// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/handles.h"

#include "heap/heap.h"

namespace terrace::umem {

using heap::heap;

namespace {

struct Handle {
  void* object;
};

void give_back(void* owner, void* block) noexcept {
  const Cache& c = *static_cast<Cache*>(owner);
  void* const object = static_cast<Handle*>(block)->object;
  if (c.destruct != nullptr) c.destruct(object, c.private_data);
  vmem_xfree(c.source, object, c.size);
}

}  // namespace

bool make_handles(Cache& c) noexcept {
  c.home = heap.levels().make_objects({.size = sizeof(Handle),
                                       .align = alignof(Handle),
                                       .prepared = true,
                                       .undo = give_back,
                                       .owner = &c,
                                       .stands_for = c.size});
  return index(c.home) != 0;
}

void* take_handled(Cache& c) noexcept {
  bool raw = false;
  auto* const handle = static_cast<Handle*>(heap.levels().allocate_object(c.home, raw));
  if (handle == nullptr) return nullptr;
  void* const object = raw ? nullptr : handle->object;
  heap.levels().free_raw(handle);
  return object;
}

bool keep_handled(Cache& c, void* object) noexcept {
  auto* const handle = static_cast<Handle*>(heap.levels().allocate_raw_object(c.home));
  if (handle == nullptr) return false;
  handle->object = object;
  heap.levels().free_object(handle, c.home);
  return true;
}

}  // namespace terrace::umem
