// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/levels/slab_level.h"

#include "base/hardened.h"
#include "heap/slabs/cleared.h"

namespace terrace::heap {

using level::Magazine;

namespace {

void undo(const ObjectClass& c, const std::uint64_t* from, const std::uint64_t* to) noexcept {
  if (c.undo == nullptr) return;
  for (; from != to; ++from) c.undo(c.owner, reinterpret_cast<void*>(*from));  // NOLINT(performance-no-int-to-ptr): a round
}

}  // namespace

void SlabLevel::put_back(void* block) noexcept {
  const std::uint64_t at = address_of(block);
  if (const HomeClass h = slabs_.any_class_of(block); is_object(h)) undo(object_classes[h], &at, &at + 1);
  slabs_.put_back(&at, 1);
}

void SlabLevel::unload(Magazine m, unsigned keep) noexcept {
  if (m.count() <= keep) return;
  const std::uint64_t *const from = m.begin() + keep, *const to = m.end();
  if (const HomeClass h = slabs_.home_of(m); is_object(h)) {
    undo(object_classes[h], from, to);
  } else if constexpr (hardened) {
    const std::size_t size = class_size(class_of(h));
    for (const std::uint64_t* round = from; round != to; ++round) expect_cleared("free", *round, size);
  }
  slabs_.put_back(from, static_cast<unsigned>(to - from));  // last, so that it needs no frame of this function
}

}  // namespace terrace::heap
