// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/slab_level.h"

#include "base/hardened.h"
#include "heap/cleared.h"

#include <utility>

namespace terrace::heap {

using level::Magazine;

Magazine SlabLevel::take(const level::Locality& here, Wanted& wanted) noexcept {
  if (is_object(wanted.h) && object_classes[wanted.h].prepared) return {};  // one by one, as they are asked for
  Magazine m = std::exchange(wanted.empty, {});
  if (!m) m = magazines_.take(here, wanted.rounds);
  m = magazines_.enlarged(here, m, wanted.rounds);
  wanted.was_cut = true;
  if (m) {
    m.add(slabs_.cut(wanted.h, m.limit(), m.end(), here.node));
    wanted.refused = m.count() == 0;
  }
  return m;
}

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

void SlabLevel::unload(Magazine& m, unsigned keep) noexcept {
  if (m.count() <= keep) return;
  if (const HomeClass h = slabs_.home_of(m); is_object(h)) {
    undo(object_classes[h], m.begin() + keep, m.end());
  } else if constexpr (hardened) {
    const std::size_t size = class_size(class_of(slabs_.home_of(m)));
    for (const std::uint64_t* round = m.begin() + keep; round != m.end(); ++round) expect_cleared("free", *round, size);
  }
  slabs_.put_back(m.begin() + keep, m.count() - keep);
  m.keep(keep);
}

}  // namespace terrace::heap
