// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/depot.h"

namespace terrace::level {

ChainWord ChainStack::pop_oldest() noexcept {
  if (count_ == 0) return chain::empty;
  const ChainWord oldest = chains_[0];
  for (unsigned i = 1; i < count_; ++i) chains_[i - 1] = chains_[i];
  set_count(count_ - 1);
  return counted(oldest);
}

Taken Depots::take(Place own, std::size_t key) noexcept {
  Taken t{.chain = at(own).pop_newest(key), .asked = 1};
  Place place = own;
  for (unsigned i = 0; i < processors_ && t.chain == chain::empty; ++i) {
    t.foreign = i != 0;
    const std::uint16_t some = marks(place.processor, key);
    for (unsigned s = 0; some != 0 && s < shards_ && t.chain == chain::empty; ++s) {
      place.shard = place.shard + 1 == shards_ ? 0 : place.shard + 1;
      if ((some >> place.shard & 1) == 0) continue;
      ++t.asked;
      t.chain = at(place).pop_oldest(key);
      if (t.chain == chain::empty) unmark_if_empty(place, key);
    }
    if (t.chain == chain::empty)
      place = {.processor = place.processor + 1 == processors_ ? 0 : place.processor + 1, .shard = own.shard};
  }
  return t;
}

}  // namespace terrace::level
