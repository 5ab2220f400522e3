// SPDX-License-Identifier: MIT OR Apache-2.0
#include "level/depot.h"

namespace terrace::level {

Magazine MagazineStack::pop_oldest() noexcept {
  if (count_ == 0) return {};
  const Magazine oldest = magazines_[0];
  for (unsigned i = 1; i < count_; ++i) magazines_[i - 1] = magazines_[i];
  set_count(count_ - 1);
  return counted(oldest);
}

Taken Depots::take(Place own, std::size_t key) noexcept {
  Taken t{.magazine = at(own).pop_newest(key), .asked = 1};
  Place place = own;
  for (unsigned i = 0; i < processors_ && !t.magazine; ++i) {
    t.foreign = i != 0;
    const std::uint16_t some = marks(place.processor, key);
    for (unsigned s = 0; some != 0 && s < shards_ && !t.magazine; ++s) {
      place.shard = place.shard + 1 == shards_ ? 0 : place.shard + 1;
      if ((some >> place.shard & 1) == 0) continue;
      ++t.asked;
      t.magazine = at(place).pop_oldest(key);
      if (!t.magazine) unmark_if_empty(place, key);
    }
    if (!t.magazine) place = {.processor = place.processor + 1 == processors_ ? 0 : place.processor + 1, .shard = own.shard};
  }
  return t;
}

}  // namespace terrace::level
