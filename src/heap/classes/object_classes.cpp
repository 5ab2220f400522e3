// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/classes/object_classes.h"

#include "os/metadata.h"

namespace terrace::heap {

constinit ObjectClasses object_classes;

std::size_t object_size(SizeClass c) noexcept { return object_classes[c].bytes; }
const TransferSize& object_transfer_size(SizeClass c) noexcept { return object_classes[c].transfer; }

namespace {

std::size_t stride_of(const ObjectClasses::Wanted& w) noexcept { return round_up(w.size, w.align); }
std::size_t bytes_of(const ObjectClasses::Wanted& w) noexcept { return stride_of(w) + w.stands_for; }
bool is_as(const ObjectClass& c, const ObjectClasses::Wanted& w) noexcept {
  return c.align == w.align && c.shape.stride == stride_of(w) && c.bytes == bytes_of(w);
}

}  // namespace

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
    if (is_as(c, wanted)) return n;
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
  if (!c.open.load(std::memory_order_relaxed) || !is_as(c, wanted)) {
    c.shape = shape_of_objects(wanted.size, wanted.align);
    c.bytes = bytes_of(wanted);
    c.transfer = make_transfer_size(c.bytes);
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
