// SPDX-License-Identifier: MIT OR Apache-2.0
#include "introspect/descriptors.h"

#include "heap/heap.h"

// Classes with private members have no standard layout; the compilers that build this know their offsets all the same.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace terrace::introspect {
using heap::Heap;
using namespace describe;

struct Layout {
  // Offsets from the heap.
  static constexpr Field of_heap[] = {
      whole<Heap>("heap"),
      TERRACE_FIELD("heap.ready", Heap, ready_),
      TERRACE_FIELD("heap.placement", Heap, options_.placement),
      TERRACE_FIELD("window.base", Heap, spans_.window_.base_),
      TERRACE_FIELD("window.map", Heap, spans_.window_.map_),
      TERRACE_FIELD("window.records", Heap, spans_.window_.records_),
      TERRACE_FIELD("window.extent", Heap, spans_.window_.extent_),
      TERRACE_FIELD("window.committed", Heap, spans_.window_.committed_),
      TERRACE_FIELD("spans.dirty_bytes", Heap, spans_.dirty_bytes_),
      TERRACE_FIELD("spans.purged_bytes", Heap, spans_.counters_.purged_bytes),
      TERRACE_FIELD("spans.taken", Heap, spans_.counters_.taken),
      TERRACE_FIELD("spans.given", Heap, spans_.counters_.given),
      TERRACE_FIELD("slabs.shapes", Heap, slabs_.shapes_),
      TERRACE_FIELD("slabs.classes", Heap, slabs_.classes_),
      TERRACE_FIELD("slabs.cut_bytes", Heap, spans_.cut_bytes_),
      TERRACE_FIELD("slabs.waste", Heap, slabs_.waste_),
      TERRACE_FIELD("large.allocated", Heap, large_.counters_.allocated),
      TERRACE_FIELD("large.freed", Heap, large_.counters_.freed),
      TERRACE_FIELD("large.live_bytes", Heap, large_.counters_.live_bytes),
      TERRACE_FIELD("core.slots", Heap, levels_.core_.slots_),
      TERRACE_FIELD("core.count", Heap, levels_.core_.count_),
      TERRACE_FIELD("core.rung", Heap, levels_.core_.rung_),
      TERRACE_FIELD("core.of_threads", Heap, levels_.core_.threads_.all_),
      TERRACE_FIELD("processors.shards", Heap, levels_.processors_.depots_.storage_),
      TERRACE_FIELD("processors.depots", Heap, levels_.processors_.depots_.layout_.count),
      TERRACE_FIELD("processors.per_depot", Heap, levels_.processors_.depots_.layout_.shards),
      TERRACE_FIELD("processors.marks", Heap, levels_.processors_.depots_.marks_),
      TERRACE_FIELD("nodes.shards", Heap, levels_.nodes_.depots_.storage_),
      TERRACE_FIELD("nodes.depots", Heap, levels_.nodes_.depots_.layout_.count),
      TERRACE_FIELD("nodes.per_depot", Heap, levels_.nodes_.depots_.layout_.shards),
      TERRACE_FIELD("nodes.marks", Heap, levels_.nodes_.depots_.marks_),
      TERRACE_FIELD("transfers", Heap, levels_.transfers_),
      TERRACE_FIELD("magazines.bytes", Heap, levels_.magazines_.bytes_),
      TERRACE_FIELD("magazines.guarded", Heap, levels_.magazines_.guarded_),
      TERRACE_FIELD("check.on", Heap, checker_.on_),
      TERRACE_FIELD("check.buckets", Heap, checker_.registry_.buckets_),
      TERRACE_FIELD("check.waiting", Heap, checker_.quarantine_.ring_),
  };

  static constexpr Field of_spans[] = {
      constant("granule.shift", span::granule_shift),
      whole<span::Record>("record"),
      TERRACE_FIELD("record.state", span::Record, state),
      TERRACE_FIELD("record.node", span::Record, node),
      TERRACE_FIELD("record.granules", span::Record, granules),
      TERRACE_FIELD("record.first", span::Record, first),
      TERRACE_FIELD("record.owners", span::Record, owners),
      constant("state.unmapped", static_cast<std::size_t>(span::State::unmapped)),
      constant("state.clean", static_cast<std::size_t>(span::State::clean)),
      constant("state.dirty", static_cast<std::size_t>(span::State::dirty)),
      constant("state.purging", static_cast<std::size_t>(span::State::purging)),
      constant("state.interior", static_cast<std::size_t>(span::State::interior)),
      constant("state.slab", static_cast<std::size_t>(heap::slab_span)),
      constant("state.large", static_cast<std::size_t>(heap::large_span)),
      // In the owner's part of a record:
      TERRACE_FIELD("large_record.requested", heap::LargeRecord, requested),
      TERRACE_FIELD("large_record.line", heap::LargeRecord, line),
      TERRACE_FIELD("large_record.lies", heap::LargeRecord, lies),
      constant("lies.kept", static_cast<std::size_t>(heap::Lies::kept)),
  };

  static constexpr Field of_slabs[] = {
      TERRACE_FIELD("slab.block_offset", heap::SlabRecord, block_offset),
      TERRACE_FIELD("slab.block_count", heap::SlabRecord, block_count),
      TERRACE_FIELD("slab.free_blocks", heap::SlabRecord, free_blocks),
      TERRACE_FIELD("slab.free_map", heap::SlabRecord, free_map),
      whole<heap::Slabs::Class>("slab_class"),
      TERRACE_FIELD("slab_class.cut", heap::Slabs::Class, counters.cut),
      TERRACE_FIELD("slab_class.returned", heap::Slabs::Class, counters.returned),
      TERRACE_FIELD("slab_class.made", heap::Slabs::Class, counters.slabs_made),
      TERRACE_FIELD("slab_class.released", heap::Slabs::Class, counters.slabs_released),
      TERRACE_FIELD("slab_class.empty", heap::Slabs::Class, empty),
      TERRACE_FIELD("slab_class.leaving", heap::Slabs::Class, leaving),
      whole<heap::Slabs::Leaving>("leaving"),
      TERRACE_FIELD("leaving.sectors", heap::Slabs::Leaving, sectors),
      TERRACE_FIELD("leaving.slab", heap::Slabs::Leaving, slab),
      whole<heap::Shape>("shape"),
      TERRACE_FIELD("shape.stride", heap::Shape, stride),
      TERRACE_FIELD("shape.per_group", heap::Shape, per_group),
      TERRACE_FIELD("shape.group_bytes", heap::Shape, group_bytes),
      TERRACE_FIELD("shape.blocks", heap::Shape, blocks),
      TERRACE_FIELD("shape.granules", heap::Shape, granules),
      constant("class.count", heap::class_count),
      constant("class.plain", heap::class_sizes.plain),
      constant("home.count", heap::home_class_count),
      constant("home.first_magazine", heap::magazine_values.first),
      constant("home.objects", heap::object_values.first),
  };

  static constexpr Field of_levels[] = {
      whole<level::Slot>("slot"),
      TERRACE_FIELD("slot.cap", level::Slot, cap),
      TERRACE_FIELD("slot.words", level::Slot, words),
      TERRACE_FIELD("slot.previous", level::Slot, previous),
      TERRACE_FIELD("slot.large", level::Slot, large),
      TERRACE_FIELD("slot.popped", level::Slot, popped),
      TERRACE_FIELD("slot.refills", level::Slot, refills),
      TERRACE_FIELD("slot.spills", level::Slot, spills),
      TERRACE_FIELD("slot.owner", level::Slot, of_thread.owner),
      TERRACE_FIELD("slot.next", level::Slot, of_thread.next),
      TERRACE_FIELD("slot.large_reused", level::Slot, large_reused),
      constant("slot.in_use", level::SlotOfThread<level::Slot>::in_use),
      constant("large_word.address_shift", 8),
      piece("shard", 0, level::Shard::bytes(level::depot_keys), 1),
      piece("shard.stacks", sizeof(level::Shard), sizeof(level::MagazineStack), level::depot_keys),
      whole<level::MagazineStack>("stack"),
      TERRACE_FIELD("stack.count", level::MagazineStack, count_),
      TERRACE_FIELD("stack.magazines", level::MagazineStack, magazines_),
      TERRACE_FIELD("stack.blocks_in", level::MagazineStack, counters_.blocks_in),
      TERRACE_FIELD("stack.blocks_out", level::MagazineStack, counters_.blocks_out),
      TERRACE_FIELD("stack.magazines_in", level::MagazineStack, counters_.magazines_in),
      TERRACE_FIELD("stack.magazines_out", level::MagazineStack, counters_.magazines_out),
      whole<heap::TransferCounters>("transfer"),
      TERRACE_FIELD("transfer.handed_out", heap::TransferCounters, handed_out),
      TERRACE_FIELD("transfer.failed", heap::TransferCounters, failed_refills),
      TERRACE_FIELD("transfer.foreign", heap::TransferCounters, foreign),
      constant("rung.mm_cid", static_cast<std::size_t>(percpu::Rung::mm_cid)),
      constant("rung.cpu_id", static_cast<std::size_t>(percpu::Rung::cpu_id)),
      constant("rung.getcpu", static_cast<std::size_t>(percpu::Rung::getcpu)),
      constant("rung.thread", static_cast<std::size_t>(percpu::Rung::thread)),
  };

  // A word of a slot is the distance from the origin to the place behind the top round; a magazine in a depot is
  // address << address_shift | kind << kind_shift | rounds.
  static constexpr Field of_magazines[] = {
      constant("magazine.smallest_word", 256),
      constant("magazine.kinds", level::magazine_kinds),
      constant("magazine.bytes_of_0", level::magazine_bytes(0)),
      constant("magazine.bytes_of_1", level::magazine_bytes(1)),
      constant("magazine.bytes_of_2", level::magazine_bytes(2)),
      constant("magazine.first_place", level::Magazine::first),
      constant("magazine.nobodys", level::Magazine::nobodys),
      constant("magazine.address_shift", 16),
      constant("magazine.kind_shift", 8),
      constant("magazine.guarded", hardened ? 1 : 0),
      whole<check::Block>("checked"),
      TERRACE_FIELD("checked.next", check::Block, next),
      TERRACE_FIELD("checked.start", check::Block, start),
      TERRACE_FIELD("checked.size", check::Block, size),
      TERRACE_FIELD("checked.state", check::Block, state),
      constant("checked.live", static_cast<std::size_t>(check::State::live)),
      constant("check.bucket_count", check::Registry::bucket_count),
  };

  // Classes of object caches, a chunk of them in each table.
  static constexpr Field of_objects[] = {
      constant("object.first", heap::first_object_class),
      constant("object.per_chunk", level::objects_per_chunk),
      piece("objects.classes", offsetof(heap::ObjectClasses, classes_), sizeof(void*), level::most_object_chunks),
      TERRACE_FIELD("objects.chunks", heap::ObjectClasses, chunks_),
      whole<heap::ObjectClass>("object"),
      TERRACE_FIELD("object.shape", heap::ObjectClass, shape),
      TERRACE_FIELD("object.align", heap::ObjectClass, align),
      TERRACE_FIELD("object.open", heap::ObjectClass, open),
      TERRACE_FIELD("object.exists", heap::ObjectClass, exists),
      TERRACE_FIELD("object.owner", heap::ObjectClass, owner),
      TERRACE_FIELD("object.prepared", heap::ObjectClass, prepared),
      TERRACE_FIELD("object.handed_out", heap::ObjectClass, transfers.handed_out),
      TERRACE_FIELD("object.failed", heap::ObjectClass, transfers.failed_refills),
      TERRACE_FIELD("object.refills", heap::ObjectClass, refills),
      TERRACE_FIELD("object.armed", heap::ObjectClass, armed),
      // Offsets from the heap:
      piece("core.objects", offsetof(Heap, levels_.core_.objects_), sizeof(void*), level::most_object_chunks),
      TERRACE_FIELD("core.budget", Heap, levels_.core_.budget_.limit_),
      piece("slabs.objects", offsetof(Heap, slabs_.object_classes_), sizeof(void*), level::most_object_chunks),
      TERRACE_FIELD("processors.objects", Heap, levels_.objects_of_processors_),
      TERRACE_FIELD("nodes.objects", Heap, levels_.objects_of_nodes_),
      whole<level::Depots>("depots"),
      TERRACE_FIELD("depots.shards", level::Depots, storage_),
      TERRACE_FIELD("depots.count", level::Depots, layout_.count),
      TERRACE_FIELD("depots.per_depot", level::Depots, layout_.shards),
      TERRACE_FIELD("depots.keys", level::Depots, layout_.keys),
      whole<level::ObjectWords>("words"),
      TERRACE_FIELD("words.cap", level::ObjectWords, cap),
      TERRACE_FIELD("words.words", level::ObjectWords, words),
      TERRACE_FIELD("words.previous", level::ObjectWords, previous),
      TERRACE_FIELD("words.popped", level::ObjectWords, popped),
      TERRACE_FIELD("slot.of_objects", level::Slot, of_objects),
      TERRACE_FIELD("record.number", span::Record, number),
  };

  // The heap profiler: tools/terrace/profile.
  using Profiler = profile::Profiler;
  using Sample = profile::Sample;
  static constexpr Field of_profile[] = {
      whole<Profiler>("profile"),
      TERRACE_FIELD("profile.period", Profiler, word_),
      TERRACE_FIELD("profile.mode", Profiler, mode_),
      TERRACE_FIELD("profile.chunks", Profiler, table_.chunks_),
      TERRACE_FIELD("profile.copies", Profiler, table_.copies_),
      TERRACE_FIELD("profile.used", Profiler, table_.used_),
      TERRACE_FIELD("profile.mark", Profiler, table_.mark_),
      TERRACE_FIELD("profile.taken", Profiler, counters_.taken),
      TERRACE_FIELD("profile.dropped", Profiler, counters_.dropped),
      TERRACE_FIELD("profile.lost", Profiler, counters_.lost),
      TERRACE_FIELD("profile.armed", Profiler, armed_),
      constant("profile.per_chunk", profile::records_per_chunk),
      whole<Sample>("sample"),
      TERRACE_FIELD("sample.address", Sample, address),
      TERRACE_FIELD("sample.size", Sample, size),
      TERRACE_FIELD("sample.weighed", Sample, weighed),
      TERRACE_FIELD("sample.period", Sample, period),
      TERRACE_FIELD("sample.time", Sample, time),
      TERRACE_FIELD("sample.born", Sample, born),
      TERRACE_FIELD("sample.died", Sample, died),
      TERRACE_FIELD("sample.tid", Sample, tid),
      TERRACE_FIELD("sample.version", Sample, version),
      TERRACE_FIELD("sample.state", Sample, state),
      TERRACE_FIELD("sample.depth", Sample, depth),
      TERRACE_FIELD("sample.has_copy", Sample, has_copy),
      TERRACE_FIELD("sample.pcs", Sample, pcs),
      whole<os::StackCopy>("stack_copy"),
      TERRACE_FIELD("stack_copy.bytes", os::StackCopy, bytes),
      TERRACE_FIELD("stack_copy.pc", os::StackCopy, pc),
      TERRACE_FIELD("stack_copy.frame", os::StackCopy, frame),
      TERRACE_FIELD("stack_copy.registers", os::StackCopy, registers),
      TERRACE_FIELD("stack_copy.data", os::StackCopy, data),
  };

  static constexpr Descriptor described() {
    auto d = begun<Descriptor>("terrace-debug", descriptor_version);
    Address* a = d.addresses;
    *a++ = address("heap", &heap::heap);
    *a++ = address("version", TERRACE_VERSION);
    *a++ = address("class_sizes", heap::class_sizes.bytes.data());
    *a++ = address("classes_of_homes", heap::classes_of_homes.data());
    *a++ = address("magazine_shapes", heap::magazine_shapes.data());
    *a++ = address("origin", &level::around_origin.zeros[level::origin_place]);
    *a++ = address("object_classes", &heap::object_classes);
    *a++ = address("profile", &profile::profiler);
    Field* f = d.fields;
    for (const Field& each : of_heap) *f++ = each;
    for (const Field& each : of_spans) *f++ = each;
    for (const Field& each : of_slabs) *f++ = each;
    for (const Field& each : of_levels) *f++ = each;
    for (const Field& each : of_magazines) *f++ = each;
    for (const Field& each : of_objects) *f++ = each;
    for (const Field& each : of_profile) *f++ = each;
    return d;
  }
  static_assert(std::size(of_heap) + std::size(of_spans) + std::size(of_slabs) + std::size(of_levels) +
                    std::size(of_magazines) + std::size(of_objects) + std::size(of_profile) ==
                described_fields);
};

}  // namespace terrace::introspect

extern "C" __attribute__((visibility("default"), TERRACE_RETAINED,
                          section(".terrace_debug"))) constinit const terrace::introspect::Descriptor terrace_debug_descriptor =
    terrace::introspect::Layout::described();
