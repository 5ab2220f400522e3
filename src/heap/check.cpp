// SPDX-License-Identifier: MIT OR Apache-2.0
// The invariants of slabs and of what stands on them, looked at one by one. For tests, while no other thread uses the heap; the
// library itself never calls it.
#include "heap/fast_path/fast_path.h"
#include "heap/heap.h"
#include "heap/slabs/sectors.h"

#include <bit>

namespace terrace::heap {

using span::GranuleIndex;
using span::no_granule;

// [W1], [W2], and the bits of one slab.
const char* Slabs::check_slab(GranuleIndex first) const noexcept {
  const SlabRecord& r = slab(first);
  const HomeClass h = home_at_granule(first);
  if (index(h) == 0 || (index(h) >= slab_class_count && !is_object(h)) ||
      spans_->window().record(first).granules != shape(h).granules)
    return "slabs: the page map has another home class";
  const auto is_free = [&r](std::uint32_t i) { return (r.free_map[i / 64] >> i % 64 & 1) != 0; };
  for (GranuleIndex g = 0; g < shape(h).granules; ++g) {
    if (home_at_granule(first + g) != h) return "slabs: the page map has another home class";
    if (spans_->window().record(first + g).first != first) return "S2: a granule of a slab does not find its first";
  }
  std::uint32_t free = 0, holes = 0;
  for (std::uint32_t w = 0; w * 64 < r.block_count; ++w) free += static_cast<std::uint32_t>(std::popcount(r.free_map[w]));
  if (free != r.free_blocks || r.block_count != shape(h).blocks) return "slabs: the number of free blocks is not that of bits";
  const Sectors sectors(shape(h), r.block_offset);
  for (std::uint32_t i = 0; i < r.block_count; ++i) {
    if ((sectors.touched_by({i, i + 1}) & r.purged) == 0) continue;
    if (!is_free(i)) return "W1: a block in use lies in a sector that is purged";
    ++holes;
  }
  return holes == r.waste.holes ? nullptr : "W2: holes are not the blocks in purged sectors";
}

// Slabs in a list of the class that say they are there.
std::uint64_t Slabs::listed(const List& list, In in) noexcept {
  std::uint64_t n = 0;
  GranuleIndex before = no_granule;
  for (GranuleIndex i = list.first; i != no_granule; i = slab(i).next) {
    const SlabRecord& r = slab(i);
    if (r.previous != before || r.list != static_cast<std::uint8_t>(in)) return ~std::uint64_t{0};
    before = i;
    ++n;
  }
  return list.last == before ? n : ~std::uint64_t{0};
}

// What a walk over the window found of one class.
struct Slabs::Met {
  std::uint32_t in_lists[3] = {}, empty = 0;
};

// [W5], and that nothing is on its way to the system.
const char* Slabs::check_class(HomeClass h, const Met& met) noexcept {
  Class& c = class_at(h);
  for (const In in : {In::resident, In::bare}) {
    std::uint64_t in_lists = 0;
    for (unsigned node = 0; node < (is_object(h) ? 1 : nodes_); ++node) in_lists += listed(list_of(h, node, in), in);
    if (in_lists != met.in_lists[static_cast<std::size_t>(in)]) return "W5: a list has other slabs than those that say so";
  }
  if (c.empty != met.empty) return "slabs: the number of those that are free altogether is wrong";
  for (const Leaving& l : c.leaving) {
    if (l.sectors != 0) return "slabs: blocks are on their way to the system, and nobody is";
  }
  return nullptr;
}

const char* Slabs::check_invariants() noexcept {
  const span::Window& window = spans_->window();
  const auto frontier = static_cast<GranuleIndex>(window.extent() >> span::granule_shift);
  const std::size_t classes = first_object_class + object_classes.chunks() * level::objects_per_chunk;
  const os::Scratch<Met[]> met(classes);
  if (met.get() == nullptr) return "no memory to look at the slabs";
  std::uint64_t counted = 0, resident = 0;
  for (GranuleIndex i = 0; i < frontier; ++i) {
    if (window.record(i).state != slab_span) continue;
    if (const char* const broken = check_slab(i)) return broken;
    const SlabRecord& r = slab(i);
    const HomeClass h = home_at_granule(i);
    const In wanted = r.free_blocks == 0 ? In::none : r.waste.counted != 0 ? In::resident : In::bare;
    if (r.list != static_cast<std::uint8_t>(wanted)) return "W5: a slab is in the wrong list";
    ++met.get()[index(h)].in_lists[r.list];
    if (r.free_blocks == r.block_count) ++met.get()[index(h)].empty;
    counted += std::uint64_t{r.waste.counted} * shape(h).stride;
    resident += (std::uint64_t{r.block_count} - r.waste.holes) * shape(h).stride;
  }
  if (counted != waste_.read()) return "W3: waste() is not the sum over slabs";
  if (resident != resident_.read()) return "W4: blocks with pages are not the sum over slabs";
  const char* broken = nullptr;
  for_each_class([&](HomeClass h) {
    if (broken == nullptr) broken = check_class(h, met.get()[index(h)]);
  });
  return broken;
}

namespace {

using level::Magazine;

// [M1]
const char* check_magazine(Magazine m) noexcept {
  const std::uint64_t* const rounds = m.begin();
  if (m.count() > m.limit() || m.limit() > level::magazine_capacity(m.kind())) return "M1: a magazine holds more than it may";
  if (rounds[-1] != 0 || rounds[m.limit()] != 0) return "M1: a magazine has no end";
  for (unsigned i = 0; i < m.limit(); ++i) {
    if (rounds[i] == 0) return "M1: a magazine ends too early";
  }
  return nullptr;
}

}  // namespace

// [I1], [I2]
const char* CoreLevel::check_word(Word w, HomeClass h) noexcept {
  if (w == empty_word) return nullptr;
  if (!magazines().is_named(w)) return "I1: a word names no magazine";
  const Magazine m = magazines().of_word(w);
  if (const char* const broken = check_magazine(m)) return broken;
  const bool any = index(h) != 0 && !homes_are_slots() && is_subline(class_of(h));
  if (m.count() != 0 && slabs_.slabs().home_of(m) != h && !any) return "I2: a word holds blocks of another home class";
  return nullptr;
}

// The words, and what the slot's caps cost.
const char* CoreLevel::check(level::Slot& slot, std::uint64_t& caps) noexcept {
  const char* broken = nullptr;
  const auto check_class = [&](HomeClass h, unsigned cap, Word word, Word previous) {
    caps += std::uint64_t{2} * cap * (cap == 0 ? 0 : class_size(class_of(h)));
    if (broken == nullptr) broken = check_word(word, h);
    if (broken == nullptr) broken = check_word(previous, h);
  };
  for (std::size_t h = 0; h < level::slot_words; ++h) check_class(home_at(h), slot.cap[h], slot.words[h], slot.previous[h]);
  for_each_chunk(slot, [&](level::ObjectWords& o, unsigned chunk) {
    for (unsigned i = 0; i < level::objects_per_chunk; ++i)
      check_class(ObjectClasses::home(chunk * level::objects_per_chunk + i), o.cap[i], o.words[i], o.previous[i]);
  });
  return broken;
}

const char* CoreLevel::check() noexcept {
  const char* broken = nullptr;
  std::uint64_t caps = 0;
  for_each([&](level::Slot& slot) {
    if (broken == nullptr) broken = check(slot, caps);
  });
  if (broken != nullptr) return broken;
  return caps > budget_.granted() ? "I3: caps are more than what was granted" : nullptr;
}

// [I4]
const char* LargeSlots::check() noexcept {
  const char* broken = nullptr;
  core_.for_each([&](level::Slot& slot) {
    for (const Word w : slot.large) {
      if (w != empty_word && (level::word_of_large(level::large_of_word(w)) != w || !large_.is_kept(level::large_of_word(w))))
        broken = "I4: a word holds what is no large block that is kept";
    }
  });
  return broken;
}

// `h`: of a key that is a class's, its class.
const char* DepotLevel::check_stack(level::Depots& depots, level::Place place, std::size_t key, HomeClass h,
                                    std::uint64_t& bytes) noexcept {
  const bool empties = !is_object(h) && key >= level::block_keys;
  const level::MagazineStack& stack = depots.at(place).stack(key);
  if (stack.size() != 0 && (depots.marks(place.depot, key) >> place.shard & 1) == 0)
    return "depot: a stack that is not empty has no mark";
  for (unsigned n = 0; n < stack.size(); ++n) {
    const Magazine m = stack.at(n);
    if (const char* const broken = check_magazine(m)) return broken;
    if ((m.count() == 0) != empties) return "depot: an empty magazine is not among the empty ones";
    if (empties) continue;
    if (slabs_.slabs().home_of(m) != h) return "depot: a stack holds a magazine of another home class";
    bytes += m.count() * class_size(class_of(h));
  }
  return nullptr;
}

const char* DepotLevel::check() noexcept {
  std::uint64_t bytes = 0;
  const char* broken = nullptr;
  const auto check_key = [&](level::Depots& depots, std::size_t key, HomeClass h) {
    for (level::Place place; place.depot < depots.depots() && broken == nullptr; ++place.depot) {
      for (place.shard = 0; place.shard < depots.shards() && broken == nullptr; ++place.shard)
        broken = check_stack(depots, place, key, h, bytes);
    }
  };
  for (std::size_t key = 0; key < level::depot_keys; ++key) check_key(depots_, key, home_at(key));
  object_classes.for_each([&](HomeClass h) { check_key(depots_for(h), key_for(h), h); });
  if (broken != nullptr) return broken;
  return bytes == budget_.granted() ? nullptr : "budget: depots hold other than what they were granted";
}

const char* Heap::check_invariants() noexcept {
  const char* broken = core().check();
  if (broken == nullptr) broken = large_slots_.check();
  if (broken == nullptr && fast_path.extent_16ths * 16 > spans_.window().extent())
    broken = "the fast path looks beyond the extent";
  if (broken == nullptr) broken = levels_.processors().check();
  if (broken == nullptr) broken = levels_.nodes().check();
  if (broken == nullptr) broken = slabs_.check_invariants();
  return broken == nullptr ? spans_.check_invariants() : broken;
}

}  // namespace terrace::heap
