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

ChainWord Depots::take(Place own, std::size_t key, bool& foreign) noexcept {
  foreign = false;
  if (const ChainWord w = at(own).pop_newest(key); w != chain::empty) return w;
  Place place = own;
  for (unsigned i = 0; i < processors_; ++i) {
    for (unsigned s = 0; s < shards_; ++s) {
      place.shard = place.shard + 1 == shards_ ? 0 : place.shard + 1;
      if (const ChainWord w = at(place).pop_oldest(key); w != chain::empty) {
        foreign = i != 0;
        return w;
      }
    }
    place.processor = place.processor + 1 == processors_ ? 0 : place.processor + 1;
  }
  return chain::empty;
}

}  // namespace terrace::level
