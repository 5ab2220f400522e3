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

Taken Depots::take(const Locality& here, std::size_t key) noexcept {
  const Place own = place(here);
  // In a process that has just begun a look at the stack itself would cost a page for each key.
  const bool marked = (marks(own.depot, key) >> own.shard & 1) != 0;
  Taken t{.magazine = marked ? at(own).pop_newest(key) : Magazine{}, .asked = 1};
  unsigned depot = own.depot;
  for (unsigned i = 0; i < depots() && !t.magazine; ++i, depot = depot + 1 == depots() ? 0 : depot + 1) {
    const std::uint16_t some = near(depot, own.depot) ? marks(depot, key) : std::uint16_t{0};
    t.foreign = i != 0;
    Place place{.depot = depot, .shard = own.shard};
    for (unsigned s = 0; some != 0 && s < shards() && !t.magazine; ++s) {
      place.shard = place.shard + 1 == shards() ? 0 : place.shard + 1;
      if ((some >> place.shard & 1) == 0) continue;
      ++t.asked;
      t.magazine = at(place).pop_oldest(key);
      if (!t.magazine) unmark_if_empty(place, key);
    }
  }
  return t;
}

}  // namespace terrace::level
