// SPDX-License-Identifier: MIT OR Apache-2.0
// What a debugger would read by the descriptors is what the accessors say: bytes are copied from where the descriptors point,
// as tools/terrace/debug does it.
#include "introspect/descriptors.h"

#include "heap/heap.h"
#include "terrace/malloc.h"

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>

namespace terrace::introspect {
namespace {

const Descriptor& descriptor = terrace_debug_descriptor;

const Field& field(std::string_view name) {
  for (const Field& f : descriptor.fields) {
    if (name == f.name) return f;
  }
  ADD_FAILURE() << "no field " << name;
  return descriptor.fields[0];
}

std::uint64_t constant(std::string_view name) {
  const Field& f = field(name);
  EXPECT_EQ(f.size, 0U) << name;
  return f.offset;
}

const std::byte* address(std::string_view name) {
  for (const Address& a : descriptor.addresses) {
    if (name == a.name) return static_cast<const std::byte*>(a.at);
  }
  ADD_FAILURE() << "no address " << name;
  return nullptr;
}

/// The nth element of a field of the structure that begins at `base`.
std::uint64_t read(const void* base, std::string_view name, std::size_t nth = 0) {
  const Field& f = field(name);
  EXPECT_LT(nth, f.count) << name;
  std::uint64_t value = 0;
  std::memcpy(&value, static_cast<const std::byte*>(base) + f.offset + nth * f.size, f.size);  // little-endian
  return value;
}
std::uint64_t of_heap(std::string_view name) { return read(address("heap"), name); }
const void* pointer(std::uint64_t value) { return reinterpret_cast<const void*>(value); }  // NOLINT

TEST(Descriptors, begin_as_a_reader_expects) {
  EXPECT_STREQ(descriptor.magic, "terrace-debug");
  EXPECT_EQ(descriptor.version, 1U);
  EXPECT_EQ(descriptor.header_bytes + descriptor.address_count * descriptor.address_bytes +
                descriptor.field_count * descriptor.field_bytes,
            offsetof(Descriptor, fields) + sizeof descriptor.fields);
  EXPECT_NE(*reinterpret_cast<const char*>(address("version")), 0);
}

TEST(Descriptors, name_everything_once) {
  std::set<std::string> names;
  for (const Field& f : descriptor.fields) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_NE(f.name[0], 0);
  }
  for (const Address& a : descriptor.addresses) EXPECT_NE(a.at, nullptr) << a.name;
}

TEST(Descriptors, tell_the_window_as_its_accessors_do) {
  void* const p = terrace_malloc(100);
  const span::Window& window = heap::heap.spans().window();
  EXPECT_EQ(of_heap("heap.ready"), 1U);
  EXPECT_EQ(pointer(of_heap("window.base")), window.base());
  EXPECT_EQ(of_heap("window.extent"), window.extent());
  EXPECT_EQ(of_heap("window.committed"), window.committed());
  const span::GranuleIndex i = window.index_of(p);
  EXPECT_EQ(pointer(of_heap("window.map") + i), &window.owners_byte(i));
  EXPECT_EQ(pointer(of_heap("window.records") + i * field("record").size), &window.record(i));
  EXPECT_EQ(std::size_t{1} << constant("granule.shift"), span::granule_size);
  terrace_free(p);
}

TEST(Descriptors, tell_the_slab_of_a_block) {
  void* const p = terrace_malloc(1000);
  const span::Window& window = heap::heap.spans().window();
  const span::GranuleIndex i = window.index_of(p);
  const span::Record& first = window.record(window.record(i).first);
  EXPECT_EQ(read(&window.record(i), "record.first"), window.record(i).first);
  EXPECT_EQ(read(&first, "record.state"), constant("state.slab"));
  EXPECT_EQ(read(&first, "record.granules"), first.granules);
  const auto& slab = first.owners_part<heap::SlabRecord>();
  const auto* const part = reinterpret_cast<const std::byte*>(&first) + field("record.owners").offset;
  EXPECT_EQ(read(part, "slab.block_offset"), slab.block_offset);
  EXPECT_EQ(read(part, "slab.block_count"), slab.block_count);
  EXPECT_EQ(read(part, "slab.free_blocks"), slab.free_blocks);
  EXPECT_EQ(read(part, "slab.free_map", 3), slab.free_map[3]);
  const auto c = address("classes_of_homes")[window.owners_byte(i)];
  std::uint32_t size = 0;
  std::memcpy(&size, address("class_sizes") + std::to_integer<std::size_t>(c) * sizeof size, sizeof size);
  EXPECT_EQ(size, terrace_malloc_usable_size(p));
  terrace_free(p);
}

TEST(Descriptors, tell_a_large_block) {
  void* const p = terrace_malloc(1'000'000);
  const span::Window& window = heap::heap.spans().window();
  const span::Record& record = window.record(window.index_of(p));
  const auto* const part = reinterpret_cast<const std::byte*>(&record) + field("record.owners").offset;
  EXPECT_EQ(read(&record, "record.state"), constant("state.large"));
  EXPECT_EQ(read(part, "large_record.requested"), 1'000'000U);
  EXPECT_EQ(window.address(record.first) + read(part, "large_record.line"), p);
  EXPECT_NE(read(part, "large_record.lies"), constant("lies.kept"));
  EXPECT_EQ(of_heap("large.allocated"), heap::heap.large().counters().allocated.read());
  EXPECT_EQ(of_heap("large.live_bytes"), heap::heap.large().counters().live_bytes.read());
  terrace_free(p);
}

TEST(Descriptors, tell_what_a_slot_holds) {
  terrace_free(terrace_malloc(200));
  heap::Heap& h = heap::heap;
  unsigned with_rounds = 0;
  h.core().for_each([&](const level::Slot& slot) {
    for (std::size_t i = 0; i < level::slot_words; ++i) {
      const Word w = slot.words[i];
      EXPECT_EQ(read(&slot, "slot.words", i), w);
      EXPECT_EQ(read(&slot, "slot.previous", i), slot.previous[i]);
      EXPECT_EQ(read(&slot, "slot.popped", i), slot.popped[i]);
      if (w < constant("magazine.smallest_word")) continue;
      const level::Magazine m = h.magazines().of_word(w);
      const auto end = reinterpret_cast<std::uintptr_t>(address("origin")) + w;
      EXPECT_EQ(pointer(end), m.end());
      const std::uint64_t bytes = constant("magazine.bytes_of_" + std::to_string(m.kind()));
      EXPECT_EQ((end % bytes) / 8 - constant("magazine.first_place"), m.count());
      with_rounds += m.count() != 0;
    }
  });
  EXPECT_NE(with_rounds, 0U);
  EXPECT_EQ(of_heap("core.count"), h.core().slot_count());
  EXPECT_EQ(of_heap("core.rung"), static_cast<std::uint64_t>(h.core().rung()));
}

TEST(Descriptors, tell_a_magazine_of_a_depot) {
  alignas(128) std::uint64_t places[16] = {};
  level::Magazine m = level::Magazine::make(places, 0);
  m.set_limit(5);
  m.push(places);
  level::MagazineStack stack;
  ASSERT_TRUE(stack.push(m));
  const std::uint64_t bits = read(&stack, "stack.magazines");
  EXPECT_EQ(pointer(bits >> constant("magazine.address_shift")), places);
  EXPECT_EQ(bits >> constant("magazine.kind_shift") & 0xff, 0U);
  EXPECT_EQ(bits & 0xff, 1U);
  EXPECT_EQ(places[constant("magazine.first_place")], reinterpret_cast<std::uintptr_t>(places));
  EXPECT_EQ(places[constant("magazine.first_place") + 1], constant("magazine.nobodys"));
  EXPECT_EQ(read(&stack, "stack.count"), stack.size());
  EXPECT_EQ(read(&stack, "stack.blocks_in"), stack.counters().blocks_in.read());
  EXPECT_EQ(level::large_of_word(std::uint64_t{0x1234} << constant("large_word.address_shift")), pointer(0x1234));
}

TEST(Descriptors, tell_the_depots) {
  ASSERT_NE(terrace_malloc(1), nullptr);
  level::Depots& depots = heap::heap.depots();
  EXPECT_EQ(of_heap("processors.depots"), depots.depots());
  EXPECT_EQ(of_heap("processors.per_depot"), depots.shards());
  EXPECT_EQ(pointer(of_heap("processors.shards")), &depots.at(0));
  const auto* const stacks = reinterpret_cast<const std::byte*>(&depots.at(0)) + field("shard.stacks").offset;
  EXPECT_EQ(stacks + std::size_t{5} * field("shard.stacks").size, reinterpret_cast<const std::byte*>(&depots.at(0).stack(5)));
  EXPECT_EQ(field("shard.stacks").size, field("stack").size);
}

TEST(Descriptors, tell_the_shapes) {
  const heap::Shapes& shapes = heap::shapes_for(static_cast<heap::Placement>(of_heap("heap.placement")));
  EXPECT_EQ(pointer(of_heap("slabs.shapes")), &shapes);
  const void* const shape = &shapes[32];
  EXPECT_EQ(read(shape, "shape.stride"), shapes[32].stride);
  EXPECT_EQ(read(shape, "shape.per_group"), shapes[32].per_group);
  EXPECT_EQ(read(shape, "shape.group_bytes"), shapes[32].group_bytes);
  EXPECT_EQ(read(shape, "shape.blocks"), shapes[32].blocks);
  EXPECT_EQ(field("shape").size, sizeof(heap::Shape));
}

TEST(Descriptors, tell_what_slabs_have_cut) {
  void* const p = terrace_malloc(3000);
  const heap::Heap& h = heap::heap;
  const heap::HomeClass home = heap::home_class(heap::class_for(3000), 0);
  const auto* const class_of_it =
      address("heap") + field("slabs.classes").offset + index(home) * std::size_t{field("slabs.classes").size};
  EXPECT_EQ(read(class_of_it, "slab_class.cut"), h.slabs().counters(home).cut.read());
  EXPECT_NE(read(class_of_it, "slab_class.cut"), 0U);
  EXPECT_EQ(read(class_of_it, "slab_class.made"), h.slabs().counters(home).slabs_made.read());
  terrace_free(p);
}

}  // namespace
}  // namespace terrace::introspect
