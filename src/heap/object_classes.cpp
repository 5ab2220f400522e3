// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/object_classes.h"

#include "os/metadata.h"

namespace terrace::heap {

constinit ObjectClasses object_classes;

std::size_t object_size(SizeClass c) noexcept { return object_classes[c].shape.stride; }
const TransferSize& object_transfer_size(SizeClass c) noexcept { return object_classes[c].transfer; }

unsigned ObjectClasses::find_free(const Wanted& wanted) const noexcept {
  const unsigned end = chunks() * level::objects_per_chunk;
  unsigned fresh = end, other = most;
  for (unsigned n = 0; n < end; ++n) {
    const ObjectClass& c = at(n);
    if (c.exists || prepared_[n / level::objects_per_chunk] != wanted.prepared) continue;
    if (!c.open.load(std::memory_order_relaxed)) {
      fresh = min_of(fresh, n);
      continue;
    }
    if (c.align == wanted.align && c.shape.stride == round_up(wanted.size, wanted.align)) return n;
    other = n;
  }
  return fresh < most ? fresh : other;
}

bool ObjectClasses::open_chunk(unsigned chunk, bool prepared) noexcept {
  prepared_[chunk] = prepared;
  if (classes_[chunk] == nullptr)
    classes_[chunk] = os::map_metadata<ObjectClass>(os::Metadata::levels, level::objects_per_chunk);
  return classes_[chunk] != nullptr;
}

HomeClass ObjectClasses::fill(unsigned number, const Wanted& wanted) noexcept {
  ObjectClass& c = at(number);
  if (!c.open.load(std::memory_order_relaxed) || c.align != wanted.align ||
      c.shape.stride != round_up(wanted.size, wanted.align)) {
    c.shape = shape_of_objects(wanted.size, wanted.align);
    c.transfer = make_transfer_size(c.shape.stride);
    c.align = static_cast<std::uint32_t>(wanted.align);
  }
  c.undo = wanted.undo;
  c.owner = wanted.owner;
  c.prepared = wanted.prepared;
  c.exists = true;
  c.open.store(true, std::memory_order_release);  // [O2]
  return home(number);
}

}  // namespace terrace::heap
