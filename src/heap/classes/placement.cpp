// SPDX-License-Identifier: MIT OR Apache-2.0
#include "heap/classes/placement.h"

namespace terrace::heap {
namespace {

constexpr std::uint32_t most_blocks = 4096;  // bits of SlabRecord::free_map
constexpr std::uint32_t blocks_wanted = 16;  // per slab, at least, of less than a granule each
constexpr std::size_t most_unused = 9;       // of a slab of others, the nth part
constexpr std::size_t longest_slab = std::size_t{1} << 22;
constexpr std::size_t smallest_odd = 512;
constexpr std::size_t max_load_probe = 250;  // nodes of the ring that the tables are tuned for: 3.9 a set,
constexpr std::uint32_t good_load = 6;       // so this leaves two of eight ways to the rest of the program

constexpr bool crowds(std::size_t size) {  // an even number of whole lines reaches half of the sets at most
  return size % cache_line == 0 && size / cache_line % 2 == 0;
}

constexpr std::uint32_t fill(Shape& s) {
  const auto bytes = static_cast<std::uint32_t>(s.granules * span::granule_size);
  const std::uint32_t rest = bytes % s.group_bytes;
  s.blocks = bytes / s.group_bytes * s.per_group + min_of(s.per_group, rest / s.stride);
  s.blocks = min_of(s.blocks, most_blocks);
  return bytes - (s.offset_of(s.blocks - 1) + s.stride);
}

// How many of the first 250 blocks of consecutive slabs share the most crowded set.
constexpr std::uint32_t worst_load(const Shape& s) {
  std::array<std::uint32_t, CacheShape::l1_sets> load{};
  std::uint32_t worst = 0;
  for (std::uint32_t n = 0; n < max_load_probe; ++n) {
    const std::uint32_t slab = n / s.blocks;
    const std::size_t start = std::size_t{slab} * s.colour_step % s.colours * cache_line;
    const std::size_t at = std::size_t{slab} * s.granules * span::granule_size + start + s.offset_of(n % s.blocks);
    worst = max_of(worst, ++load.at(at / cache_line % CacheShape::l1_sets));
  }
  return worst;
}

constexpr void choose_colours(Shape& s, std::uint32_t slack) {
  s.colours = static_cast<std::uint16_t>(min_of<std::size_t>(slack / cache_line + 1, CacheShape::l1_sets));
  Shape best = s;
  std::uint32_t best_load = worst_load(s);
  for (std::uint16_t step = 1; step < s.colours && best_load > good_load; ++step) {
    s.colour_step = step;
    const std::uint32_t load = worst_load(s);
    if (load < best_load) {
      best = s;
      best_load = load;
    }
  }
  s = best;
}

// `room`: bytes per block for spacers and colours. Of blocks of a granule or more as few as leave no more than a ninth of the
// slab unused: one that a slot holds keeps all of the slab from other classes.
constexpr std::uint16_t granules_for(std::size_t stride, std::size_t room = cache_line) {
  if (!fills_granules(stride))
    return static_cast<std::uint16_t>((blocks_wanted * (stride + room) + span::granule_size - 1) / span::granule_size);
  const auto unused = [=](std::size_t bytes) { return bytes - bytes / (stride + room) * stride; };
  std::uint16_t granules = 1;
  while (unused(granules * span::granule_size) > granules * span::granule_size / most_unused) ++granules;
  return granules;
}

// Without spacers the whole slab is one group.
constexpr Shape without_spacers(std::size_t stride, std::size_t room = cache_line) {
  Shape s;
  s.stride = static_cast<std::uint32_t>(stride);
  s.granules = granules_for(stride, room);
  s.per_group = s.group_bytes = ~std::uint32_t{0};
  return s;
}

constexpr Shape with_spacers(std::size_t stride, std::size_t per_group, unsigned scale) {
  Shape s = without_spacers(stride);
  s.granules = static_cast<std::uint16_t>(s.granules * scale);
  s.per_group = static_cast<std::uint32_t>(per_group);
  s.group_bytes = static_cast<std::uint32_t>(per_group * stride + cache_line);
  choose_colours(s, fill(s));
  return s;
}

// A spacer every 4 KiB or so; how often exactly, and in how long a slab, is whatever spreads the probe best.
constexpr Shape punctuate(std::size_t stride) {
  const std::size_t usual = max_of<std::size_t>(1, CacheShape::set_span / stride);
  Shape best = with_spacers(stride, usual, 1);
  std::uint32_t best_load = worst_load(best);
  const unsigned most_scale = fills_granules(stride) ? 1 : 4;
  for (unsigned scale = 1; scale <= most_scale; scale *= 2) {
    for (std::size_t per_group = usual; per_group > usual / 2 && best_load > good_load; --per_group) {
      const Shape s = with_spacers(stride, per_group, scale);
      if (worst_load(s) < best_load) {
        best = s;
        best_load = worst_load(s);
      }
    }
  }
  return best;
}

constexpr Shape make_shape(SizeClass c, Placement placement) {
  const std::size_t size = class_size(c);
  const bool aware = placement != Placement::none && !is_aligned_class(c);
  if (aware && crowds(size) && (placement != Placement::odd || size < smallest_odd)) return punctuate(size);
  const bool odd = aware && placement == Placement::odd && size >= smallest_odd;
  Shape s = without_spacers(odd ? (round_up(size, cache_line) / cache_line | 1) * cache_line : size,
                            is_aligned_class(c) ? 0 : cache_line);
  const std::uint32_t slack = fill(s);
  if (aware) choose_colours(s, slack);
  return s;
}

constexpr Shape with_divisors(Shape s) {
  s.last = s.offset_of(s.blocks - 1);
  s.stride_reciprocal = Shape::reciprocal_of(s.stride);
  // One group: the quotient is always 0.
  s.group_reciprocal = s.group_bytes == ~std::uint32_t{0} ? 0 : Shape::reciprocal_of(s.group_bytes);
  return s;
}

consteval Shapes make_shapes(Placement placement) {
  Shapes all{};
  all[0].per_group = 0;  // no block begins anywhere
  for (std::size_t c = 1; c < class_count; ++c)
    all.at(c) = with_divisors(make_shape(SizeClass{static_cast<std::uint8_t>(c)}, placement));
  return all;
}

consteval std::array<Shape, level::magazine_kinds> make_magazine_shapes() {
  std::array<Shape, level::magazine_kinds> all{};
  for (unsigned kind = 0; kind < level::magazine_kinds; ++kind) {
    Shape s = without_spacers(level::magazine_bytes(kind), 0);
    fill(s);
    all.at(kind) = with_divisors(s);
  }
  return all;
}

constexpr Shapes none_shapes = make_shapes(Placement::none);
constexpr Shapes punctuated_shapes = make_shapes(Placement::punctuated);
constexpr Shapes odd_shapes = make_shapes(Placement::odd);

consteval bool shapes_hold(const Shapes& shapes) {
  for (std::size_t c = 1; c < class_count; ++c) {
    const Shape& s = shapes[c];
    if (s.granules * span::granule_size > longest_slab) return false;
    if ((s.colours - 1U) * cache_line > 0xffff) return false;  // SlabRecord::block_offset
    if (s.blocks == 0 || s.blocks > most_blocks || s.stride < class_sizes.bytes[c]) return false;
    const std::size_t end = (s.colours - 1U) * cache_line + s.offset_of(s.blocks - 1) + s.stride;
    if (end > s.granules * span::granule_size) return false;
    for (std::uint32_t i = 0; i < s.blocks; i += 7) {
      if (s.block_at(s.offset_of(i)) != i || s.block_at(s.offset_of(i) + SizeRule::quantum / 2) != s.blocks) return false;
    }
  }
  return true;
}
static_assert(shapes_hold(none_shapes) && shapes_hold(punctuated_shapes) && shapes_hold(odd_shapes));

constexpr AlignedClasses none_aligned{none_shapes};
constexpr AlignedClasses punctuated_aligned{punctuated_shapes};
constexpr AlignedClasses odd_aligned{odd_shapes};

// Each block of a class that a request may get is large enough and aligned, whatever colour its slab has.
consteval bool aligned_hold(const AlignedClasses& classes, const Shapes& shapes) {
  for (std::size_t align = 2 * SizeRule::quantum; align <= SizeRule::largest_alignment; align *= 2) {
    for (std::size_t c = 1; c <= class_sizes.plain; ++c) {
      const SizeClass chosen = classes(class_sizes.bytes[c], align);
      const Shape& s = shapes[index(chosen)];
      if (class_size(chosen) < class_sizes.bytes[c] || is_subline(chosen)) return false;
      if (s.colours > 1 && cache_line % align != 0) return false;
      for (std::uint32_t i = 0; i < s.blocks; ++i) {
        if (s.offset_of(i) % align != 0) return false;
      }
    }
  }
  return true;
}
static_assert(aligned_hold(none_aligned, none_shapes) && aligned_hold(odd_aligned, odd_shapes));
static_assert(aligned_hold(punctuated_aligned, punctuated_shapes));

}  // namespace

constinit const std::array<Shape, level::magazine_kinds> magazine_shapes = make_magazine_shapes();

// Colours shift the start by lines: only where that keeps the alignment. Spacers are lines, too.
Shape shape_of_objects(std::size_t size, std::size_t align) noexcept {
  const std::size_t stride = round_up(size, align);
  const bool aware = align <= cache_line;
  Shape s = without_spacers(stride, aware ? cache_line : 0);
  if (aware && crowds(stride)) {
    s.per_group = static_cast<std::uint32_t>(max_of<std::size_t>(1, CacheShape::set_span / stride));
    s.group_bytes = static_cast<std::uint32_t>(s.per_group * stride + cache_line);
  }
  const std::uint32_t slack = fill(s);
  if (aware) {
    s.colours = static_cast<std::uint16_t>(min_of<std::size_t>(slack / cache_line + 1, CacheShape::l1_sets));
    s.colour_step = 1;
  }
  return with_divisors(s);
}

const AlignedClasses& aligned_classes_for(Placement placement) noexcept {
  switch (placement) {
    case Placement::none: return none_aligned;
    case Placement::odd: return odd_aligned;
    case Placement::punctuated:
    case Placement::random: break;
  }
  return punctuated_aligned;
}

const Shapes& shapes_for(Placement placement) noexcept {
  switch (placement) {
    case Placement::none: return none_shapes;
    case Placement::odd: return odd_shapes;
    case Placement::punctuated:
    case Placement::random: break;
  }
  return punctuated_shapes;
}

const char* name_of(Placement p) noexcept {
  constexpr const char* names[] = {"none", "punctuated", "odd", "random"};
  return names[static_cast<unsigned>(p)];
}

}  // namespace terrace::heap
