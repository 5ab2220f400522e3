// SPDX-License-Identifier: MIT OR Apache-2.0
// The last level of blocks: magazines are filled from slabs, and emptied into them.
#pragma once

#include "heap/levels/wanted.h"
#include "heap/slabs/magazines.h"
#include "heap/slabs/slabs.h"
#include "level/locality.h"

#include <utility>

namespace terrace::heap {

class SlabLevel {
 public:
  constexpr SlabLevel(Slabs& slabs, Magazines& magazines) noexcept : slabs_(slabs), magazines_(magazines) {}

  /// Up to `rounds` blocks of a slab, in `empty` or else in a new magazine. Empty: no memory for blocks; none: no memory for a
  /// magazine.
  TERRACE_INLINE level::Magazine take(const level::Locality& here, Wanted& wanted) noexcept {
    if (is_object(wanted.h) && object_classes[wanted.h].prepared) return {};  // one by one, as they are asked for
    level::Magazine m = std::exchange(wanted.empty, {});
    if (!m) m = magazines_.take(here, wanted.rounds);
    m = magazines_.enlarged(here, m, wanted.rounds);
    wanted.was_cut = true;
    if (m) {
      m.add(slabs_.cut(wanted.h, m.limit(), m.end(), here.node));
      wanted.refused = m.count() == 0;
    }
    return m;
  }
  /// Its blocks to the slabs, the magazine to the other empty ones.
  bool give(const level::Locality& here, level::Magazine& m) noexcept {
    unload(m);
    m.clear();
    magazines_.give(here, m);
    m = {};
    return true;
  }
  /// One block, which was in use.
  void put_back(void* block) noexcept;
  /// Returns all blocks but the lowest `keep` to the slabs; prepared ones are destructed first.
  void unload(level::Magazine m, unsigned keep = 0) noexcept;
  /// The same, then returns the magazine.
  void empty(level::Magazine m) noexcept {
    unload(m);
    m.clear();
    magazines_.release(m);
  }

  Slabs& slabs() noexcept { return slabs_; }
  Magazines& magazines() noexcept { return magazines_; }

 private:
  Slabs& slabs_;
  Magazines& magazines_;
};

}  // namespace terrace::heap
