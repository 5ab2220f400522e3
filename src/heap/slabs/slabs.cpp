// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/slabs/slabs.h"

#include "base/assert.h"
#include "base/hardened.h"
#include "base/report.h"
#include "heap/slabs/random_blocks.h"
#include "heap/slabs/sectors.h"
#include "os/metadata.h"
#include "os/secret.h"

#include <bit>
#include <cstring>

namespace terrace::heap {

using span::GranuleIndex;
using span::no_granule;

namespace {

constinit thread_local GranuleIndex made_here = no_granule;

// Free blocks of the hardened build hold zeroes.
void clear(std::byte* from, std::size_t bytes) noexcept {
  if (!os::purge(from, bytes)) std::memset(from, 0, bytes);
}

}  // namespace

const void* Slabs::take_made_slab(HomeClass h) const noexcept {
  const GranuleIndex first = made_here;
  made_here = no_granule;
  return first == no_granule || home_at_granule(first) != h ? nullptr : spans_->window().address(first);
}

// Called with the class locked; the span lock is below it in rank.

GranuleIndex Slabs::make_slab(HomeClass h, unsigned node) noexcept {
  const Shape& s = shape(h);
  const span::Cut pieces = has_own_pages(s) ? span::Cut::coarse : span::Cut::fine;
  const span::Spans::Span found = spans_->take(s.granules, slab_span, pieces, node);
  if (found.first != no_granule) begin_slab(h, found);
  return found.first;
}

void Slabs::begin_slab(HomeClass h, const span::Spans::Span& found) noexcept {
  on_take(h);
  Class& c = class_at(h);
  const Shape& s = shape(h);
  const span::Window& window = spans_->window();
  SlabRecord& r = slab(found.first);
  if (hardened && !found.untouched) clear(window.address(found.first), s.granules * span::granule_size);
  made_here = found.first;
  r.block_count = static_cast<std::uint16_t>(s.blocks);
  r.free_blocks = static_cast<std::uint16_t>(s.blocks);
  r.list = static_cast<std::uint8_t>(In::none);
  r.block_offset = static_cast<std::uint16_t>(c.next_colour++ * s.colour_step % s.colours * cache_line);
  r.scan = 0;
  r.purged = found.clean ? Sectors(s, r.block_offset).all() : 0;
  r.waste = {.holes = static_cast<std::uint16_t>(found.clean ? s.blocks : 0), .stuck = 0, .looked = 0, .counted = 0};
  for (std::uint32_t w = 0; w * 64 < s.blocks; ++w) {
    const std::uint32_t left = s.blocks - w * 64;
    r.free_map[w] = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
  }
  window.record(found.first).number = static_cast<std::uint16_t>(index(h));
  for (std::uint32_t g = 0; g < s.granules; ++g) {
    // [W2] release, pairs with nothing but the data dependency of whoever gets a block of the slab.
    __atomic_store_n(&window.owners_byte(found.first + g), page_value(h), __ATOMIC_RELEASE);
  }
  spans_->add_to_cut(s.granules * span::granule_size);
  resident_.add(std::uint64_t{s.blocks - r.waste.holes} * s.stride);
  count_waste(h, found.first);
  ++c.empty;
  c.counters.slabs_made.add();
}

void Slabs::release_slab(HomeClass h, GranuleIndex first) noexcept {
  Class& c = class_at(h);
  leave(h, first);
  const SlabRecord& r = slab(first);
  const std::uint32_t granules = shape(h).granules;
  TERRACE_ASSERT(r.free_blocks == r.block_count && c.empty != 0, "slabs: one with blocks in use is released");
  --c.empty;
  waste_.sub(std::uint64_t{r.waste.counted} * shape(h).stride);
  resident_.sub(std::uint64_t{r.block_count} * shape(h).stride - std::uint64_t{r.waste.holes} * shape(h).stride);
  spans_->add_to_cut(std::uint64_t{0} - granules * span::granule_size);
  for (std::uint32_t g = 0; g < granules; ++g) {
    __atomic_store_n(&spans_->window().owners_byte(first + g), std::uint8_t{0}, __ATOMIC_RELEASE);  // [W2]
  }
  c.counters.slabs_released.add();
  spans_->give_unsettled(first);
}

void Slabs::seed() noexcept {
  if constexpr (hardened) {
    for (std::size_t h = 1; h < slab_class_count; ++h) classes_[h].random.seed(os::process_secret(h));
  }
}

bool Slabs::bind_to_nodes(unsigned nodes) noexcept {
  nodes = min_of(nodes, span::most_nodes);
  if (nodes <= 1 || nodes_ == nodes) return true;
  const std::size_t count = (nodes - 1) * slab_class_count;
  more_lists_ = os::map_metadata<Lists>(os::Metadata::levels, count);
  if (more_lists_ == nullptr) return false;
  for (std::size_t i = 0; i < count; ++i) more_lists_[i] = Lists{};
  nodes_ = nodes;
  return true;
}

bool Slabs::open_objects(unsigned chunk) noexcept {
  if (object_classes_[chunk] != nullptr) return true;
  auto* const classes = os::map_metadata<Class>(os::Metadata::levels, level::objects_per_chunk);
  if (classes == nullptr) return false;
  for (unsigned i = 0; i < level::objects_per_chunk; ++i) {
    classes[i].lists = Lists{};
    if constexpr (hardened)
      classes[i].random.seed(os::process_secret(first_object_class + chunk * level::objects_per_chunk + i));
  }
  object_classes_[chunk] = classes;
  return true;
}

// No memory for a slab, or none is wanted.
GranuleIndex Slabs::slab_of_any_node(HomeClass h) noexcept {
  for (unsigned node = 0; node < nodes_; ++node) {
    const Lists& l = lists(h, node);
    if (l.resident.first != no_granule) return l.resident.first;
    if (l.bare.first != no_granule) return l.bare.first;
  }
  return no_granule;
}

// Where a single block does as well, it is tried next: two refusals would cost twice as much as one.
bool Slabs::is_short_for_slab(HomeClass h) const noexcept {
  const Shape& s = shape(h);
  return s.granules > 1 && !is_object(h) && spans_->is_short_of(s.granules);
}

// Slabs whose free blocks hold pages come first.
GranuleIndex Slabs::slab_to_cut(HomeClass h, bool may_grow, unsigned node) noexcept {
  const Lists& own = lists(h, node % span::most_nodes);
  GranuleIndex first = own.resident.first != no_granule ? own.resident.first : own.bare.first;
  if (first == no_granule && may_grow && !is_short_for_slab(h)) first = make_slab(h, node % span::most_nodes);
  if (first == no_granule) return slab_of_any_node(h);
  if constexpr (hardened) {  // one of the first few
    for (std::uint32_t further = class_at(h).random.below(4); further != 0; --further) {
      const GranuleIndex next = slab(first).next;
      if (next == no_granule) break;
      first = next;
    }
  }
  return first;
}

// The numbers of up to `want` free blocks, the lowest last (hardened build: in any order), which are free no more. How many.
unsigned Slabs::gather(Class& c, SlabRecord& r, unsigned want, std::uint64_t* numbers) noexcept {
  const unsigned n = min_of<unsigned>(want, r.free_blocks);
  r.free_blocks = static_cast<std::uint16_t>(r.free_blocks - n);
  if constexpr (hardened) return take_random(r.free_map, r.block_count, n, numbers, c.random);
  unsigned left = n;
  std::uint32_t w = r.scan;
  for (; w * 64 < r.block_count; ++w) {
    while (r.free_map[w] != 0 && left != 0) {
      const auto bit = static_cast<unsigned>(std::countr_zero(r.free_map[w]));
      r.free_map[w] &= r.free_map[w] - 1;
      numbers[--left] = w * 64 + bit;
    }
    if (left == 0) break;
  }
  TERRACE_ASSERT(left == 0, "slabs: fewer blocks are free than are counted");
  r.scan = static_cast<std::uint8_t>(w);
  return n;
}

namespace {

// Addresses of blocks in ascending order, mostly neighbours: no division for those.
class Addresses {
 public:
  Addresses(std::byte* start, const Shape& s) noexcept : start_(start), shape_(s) {}
  std::byte* of(std::uint32_t i) noexcept {
    if (i != next_ || within_ == shape_.per_group) {
      within_ = i % shape_.per_group;
      offset_ = shape_.offset_of(i);
    }
    std::byte* const at = start_ + offset_;
    next_ = i + 1;
    ++within_;
    offset_ += shape_.stride;
    return at;
  }

 private:
  std::byte* start_;
  const Shape& shape_;
  std::uint32_t next_ = ~std::uint32_t{0}, within_ = 0, offset_ = 0;
};

// From numbers to addresses.
void locate(std::byte* start, const Shape& s, std::uint64_t* blocks, unsigned n) noexcept {
  Addresses addresses(start, s);
  while (n-- != 0) blocks[n] = address_of(addresses.of(static_cast<std::uint32_t>(blocks[n])));
}

}  // namespace

// Apart from what it calls, a slab is made before: the stack that both take does not add up.
unsigned Slabs::cut(HomeClass h, unsigned want, std::uint64_t* blocks, bool may_grow, unsigned node) noexcept {
  const os::LockGuard guard(class_at(h).mutex);
  const GranuleIndex first = slab_to_cut(h, may_grow, node);
  return first == no_granule ? 0 : cut_from(h, first, want, blocks);
}

unsigned Slabs::cut_from(HomeClass h, GranuleIndex first, unsigned want, std::uint64_t* blocks) noexcept {
  Class& c = class_at(h);
  SlabRecord& r = slab(first);
  if (r.free_blocks == r.block_count) --c.empty;
  const std::uint32_t resident = resident_blocks(r);
  const unsigned n = gather(c, r, want, blocks);
  fill_holes(h, r, blocks, n);
  const std::uint32_t fewer = resident - min_of(resident, resident_blocks(r));
  if (fewer < n) on_take(h);
  if (fewer < n && has_own_pages(shape(h))) refaults_.on_refault(std::uint64_t{n - fewer} * shape(h).stride);
  count_waste(h, first);
  c.counters.cut.add(n);
  spans_->add_cut(std::uint64_t{n} * shape(h).stride);
  locate(first_block(first), shape(h), blocks, n);
  return n;
}

// Marks the leading blocks free, as many as lie in this slab: at least one. How many. Class locked.
unsigned Slabs::put_back_leading(HomeClass h, GranuleIndex first, const std::uint64_t* blocks, unsigned n) noexcept {
  SlabRecord& r = slab(first);
  const Shape& s = shape(h);
  const std::uintptr_t start = address_of(first_block(first));
  const std::uintptr_t length = s.granules * span::granule_size - r.block_offset;
  unsigned done = 0;
  for (; done < n; ++done) {
    const std::uintptr_t offset = blocks[done] - start;
    if (offset >= length && done != 0) break;  // in another slab
    const std::uint32_t nth = offset < length ? s.block_at(static_cast<std::uint32_t>(offset)) : s.blocks;
    if (nth >= s.blocks) report_invalid_pointer(function_that_frees(h), pointer_to(blocks[done]));
    const std::uint64_t bit = std::uint64_t{1} << nth % 64;
    if ((r.free_map[nth / 64] & bit) != 0) report_double_free(function_that_frees(h), pointer_to(blocks[done]));
    r.free_map[nth / 64] |= bit;
    r.scan = static_cast<std::uint8_t>(min_of<std::uint32_t>(r.scan, nth / 64));
  }
  r.free_blocks = static_cast<std::uint16_t>(r.free_blocks + done);
  return done;
}

void Slabs::report_no_slab(const void* block) noexcept {
  if (spans_->is_free_again(spans_->window().index_of(block))) report_double_free("free", block);
  report_invalid_pointer("free", block);
}

// What a slab is worth after blocks came back to it: kept, given back, or rid of its free pages. The class is locked.
void Slabs::settle(HomeClass h, GranuleIndex first) noexcept {
  Class& c = class_at(h);
  const SlabRecord& r = slab(first);
  count_waste(h, first);
  if (r.free_blocks == r.block_count) {
    ++c.empty;
    if (c.empty > 1 || shape(h).granules > 1 || wasteful(h, r)) release_slab(h, first);
  } else if (wasteful(h, r)) {
    purge_slab(h, first);
  }
}

void Slabs::put_back(const std::uint64_t* blocks, unsigned n) noexcept {
  if (n == 0) return;
  const span::Window& window = spans_->window();
  const HomeClass h = home_at_granule(window.index_of(pointer_to(blocks[0])));
  if (!is_for_program(h)) report_no_slab(pointer_to(blocks[0]));
  put_back(h, blocks, n);
}

// What is known of slabs is cold where much memory is in use, and each block may be of another slab: it is fetched side by
// side.
void Slabs::prefetch_records(const Shape& s, const std::uint64_t* blocks, unsigned n) const noexcept {
  const span::Window& window = spans_->window();
  for (GranuleIndex i = 0, last = no_granule; i < n; ++i) {
    const GranuleIndex granule = window.index_of(pointer_to(blocks[i]));
    if (granule == last) continue;
    last = granule;
    const SlabRecord& r = window.record(granule).owners_part<SlabRecord>();
    const std::uint64_t offset = (blocks[i] - address_of(window.base())) % span::granule_size;
    __builtin_prefetch(&r, 1);
    __builtin_prefetch(&r.free_map[offset * s.blocks / span::granule_size / 64 % 64], 1);  // about there: a line has 512 blocks
  }
}

void Slabs::put_back(HomeClass h, const std::uint64_t* blocks, unsigned n) noexcept {
  const span::Window& window = spans_->window();
  prefetch_records(shape(h), blocks, n);
  spans_->add_cut(std::uint64_t{0} - std::uint64_t{n} * shape(h).stride);
  {
    const os::LockGuard guard(class_at(h).mutex);
    for (unsigned done = 0; done < n;) {
      const GranuleIndex granule = window.index_of(pointer_to(blocks[done]));
      if (home_at_granule(granule) != h) report_no_slab(pointer_to(blocks[done]));
      const GranuleIndex first = window.record(granule).first;
      done += put_back_leading(h, first, blocks + done, n - done);
      settle(h, first);
    }
    class_at(h).counters.returned.add(n);  // last: giving pages back drops the lock, and a trim then misses the rest
  }
  spans_->settle();  // for the slabs released: not under the lock of the class
}

std::uint64_t Slabs::returned() noexcept {
  std::uint64_t sum = 0;
  for_each_class([&](HomeClass h) { sum += counters(h).returned.read(); });
  return sum;
}

const void* Slabs::block_holding(HomeClass h, const void* p) const noexcept {
  const span::Window& window = spans_->window();
  const std::byte* const start = first_block(window.record(window.index_of(p)).first);
  const std::uintptr_t offset = address_of(p) - address_of(start);
  const Shape& s = shape(h);
  if (offset > s.last + std::uintptr_t{s.stride}) return nullptr;
  const std::uintptr_t group = offset / s.group_bytes, nth = offset % s.group_bytes / s.stride;
  const auto block = static_cast<std::uint32_t>(group * s.per_group + nth);
  return nth < s.per_group && block < s.blocks ? start + s.offset_of(block) : nullptr;
}

bool Slabs::is_free(const void* block) const noexcept {
  const span::Window& window = spans_->window();
  const GranuleIndex i = window.index_of(block);
  const GranuleIndex first = window.record(i).first;
  const auto offset = static_cast<std::uint32_t>(static_cast<const std::byte*>(block) - first_block(first));
  const std::uint32_t nth = shape(home_at_granule(i)).block_at(offset);
  return (slab(first).free_map[nth / 64] >> nth % 64 & 1) != 0;
}

void Slabs::lock_all() noexcept {
  const os::LockOrder::TakesAll all;
  for_each_class([this](HomeClass h) { class_at(h).mutex.lock(); });
}
void Slabs::unlock_all() noexcept {
  for_each_class([this](HomeClass h) { class_at(h).mutex.unlock(); });
}
void Slabs::reset_after_fork() noexcept {
  for_each_class([this](HomeClass h) {
    repair_in_child(h);
    class_at(h).mutex.reset_after_fork();
  });
}

}  // namespace terrace::heap
