// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/slab_level.h"

#include "base/hardened.h"
#include "heap/cleared.h"

#include <utility>

namespace terrace::heap {

using level::Magazine;

Magazine SlabLevel::take(const level::Locality& here, Wanted& wanted) noexcept {
  Magazine m = std::exchange(wanted.empty, {});
  if (!m) m = magazines_.take(here, wanted.rounds);
  m = magazines_.enlarged(here, m, wanted.rounds);
  wanted.was_cut = true;
  if (m) m.add(slabs_.cut(wanted.h, m.limit(), m.end(), here.node));
  return m;
}

void SlabLevel::unload(Magazine& m, unsigned keep) noexcept {
  if (m.count() <= keep) return;
  if constexpr (hardened) {
    const std::size_t size = class_size(class_of(slabs_.home_of(m)));
    for (const std::uint64_t* round = m.begin() + keep; round != m.end(); ++round) expect_cleared("free", *round, size);
  }
  slabs_.put_back(m.begin() + keep, m.count() - keep);
  m.keep(keep);
}

}  // namespace terrace::heap
