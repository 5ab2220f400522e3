// SPDX-License-Identifier: MIT OR Apache-2.0
// What the levels do for object caches beyond what they do for every class: classes are made and removed, and blocks tell
// whether they are as they come from a slab.
#include "heap/levels/block_levels.h"
#include "heap/levels/upkeep.h"

namespace terrace::heap {

using level::Slot;

// A chunk is opened in every level before anybody can find it.
bool BlockLevels::open_objects(unsigned number, bool prepared) noexcept {
  const unsigned chunk = number / level::objects_per_chunk;
  if (chunk < object_classes.chunks()) return true;
  if (chunk >= level::most_object_chunks || !object_classes.open_chunk(chunk, prepared) || !core_.open_objects(chunk) ||
      !processors_.open_objects(chunk) || !nodes_.open_objects(chunk) || !slab_level_.slabs().open_objects(chunk)) {
    return false;
  }
  object_classes.publish(chunk + 1);
  return true;
}

HomeClass BlockLevels::make_objects(const ObjectClasses::Wanted& wanted) noexcept {
  const os::LockGuard guard(objects_mutex_);
  const unsigned number = object_classes.find_free(wanted);
  if (number >= ObjectClasses::most || !open_objects(number, wanted.prepared)) return {};
  return object_classes.fill(number, wanted);
}

void BlockLevels::drain_depots(HomeClass h) noexcept {
  processors_.drain_objects(h);
  nodes_.drain_objects(h);
}

bool BlockLevels::close_objects(HomeClass h) noexcept {
  if (!slab_level_.slabs().release_all(h)) return false;
  const os::LockGuard guard(objects_mutex_);
  object_classes[h].exists = false;
  return true;
}

void* BlockLevels::allocate_object(HomeClass h, bool& raw) noexcept {
  raw = false;
  const SizeClass c = class_of(h);
  Slot* const slot = core_.current_for(h);
  if (slot != nullptr) {
    if (void* const block = core_.pop(*slot, h)) return block;
  }
  const Got got = allocate_beyond(slot, c);
  raw = got.raw;
  return got.block;
}

void* BlockLevels::allocate_raw_object(HomeClass h) noexcept {
  void* const block = last_resort(nullptr, class_of(h), true).block;
  fast_path_.follow_frontier();
  upkeep::keep_bound(maintenance_);
  return block;
}

void BlockLevels::free_raw(void* p) noexcept {
  const std::uint64_t block = address_of(p);
  slab_level_.slabs().put_back(&block, 1);
  upkeep::keep_bound(maintenance_);
}

}  // namespace terrace::heap
