// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/descriptors.h"

#include "umem/cache.h"
#include "umem/debug.h"
#include "umem/default_caches.h"
#include "umem/firewall.h"
#include "umem/messages.h"
#include "umem/options.h"
#include "umem/tagged.h"
#include "vmem/arena_list.h"

// Classes with private members have no standard layout; the compilers that build this know their offsets all the same.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

namespace terrace::umem {

using namespace describe;
using vmem::Arena, vmem::Segment;

struct Layout {
  static constexpr Field of_caches[] = {
      TERRACE_FIELD("caches.first", CacheList, first_),
      whole<Cache>("cache"),
      TERRACE_FIELD("cache.name", Cache, name),
      TERRACE_FIELD("cache.size", Cache, size),
      TERRACE_FIELD("cache.align", Cache, align),
      TERRACE_FIELD("cache.construct", Cache, construct),
      TERRACE_FIELD("cache.destruct", Cache, destruct),
      TERRACE_FIELD("cache.reclaim", Cache, reclaim),
      TERRACE_FIELD("cache.private", Cache, private_data),
      TERRACE_FIELD("cache.source", Cache, source),
      TERRACE_FIELD("cache.flags", Cache, flags),
      TERRACE_FIELD("cache.debug", Cache, debug),
      TERRACE_FIELD("cache.verify", Cache, verify),
      TERRACE_FIELD("cache.home", Cache, home),
      TERRACE_FIELD("cache.has_class", Cache, has_class),
      TERRACE_FIELD("cache.has_handles", Cache, has_handles),
      TERRACE_FIELD("cache.allocated", Cache, allocated),
      TERRACE_FIELD("cache.freed", Cache, freed),
      TERRACE_FIELD("cache.failed", Cache, failed),
      TERRACE_FIELD("cache.next", Cache, next),
      constant("flag.notouch", UMC_NOTOUCH),
      constant("flag.nodebug", UMC_NODEBUG),
      constant("flag.nomagazine", UMC_NOMAGAZINE),
      constant("flag.nohash", UMC_NOHASH),
      constant("default.largest", largest_default),
      constant("default.step", default_step),
  };

  // Patterns and states have the same number in both halves.
  static constexpr Field of_debug[] = {
      constant("debug.audit", debug_audit),
      constant("debug.deadbeef", debug_deadbeef),
      constant("debug.redzone", debug_redzone),
      constant("debug.nomagazine", debug_nomagazine),
      constant("debug.checknull", debug_checknull),
      TERRACE_FIELD("options.debug", Options, debug),
      TERRACE_FIELD("options.frames", Options, frames),
      TERRACE_FIELD("options.verbose", Options, verbose),
      TERRACE_FIELD("options.no_abort", Options, no_abort),
      TERRACE_FIELD("options.no_magazines", Options, no_magazines),
      TERRACE_FIELD("options.perthread_cache", Options, perthread_cache),
      TERRACE_FIELD("options.has_perthread", Options, has_perthread_cache),
      TERRACE_FIELD("options.reap_interval", Options, reap_interval_s),
      whole<Record>("record"),
      TERRACE_FIELD("record.object", Record, event.object),
      TERRACE_FIELD("record.cache", Record, event.cache),
      TERRACE_FIELD("record.nanoseconds", Record, event.nanoseconds),
      TERRACE_FIELD("record.thread", Record, event.thread),
      TERRACE_FIELD("record.depth", Record, event.depth),
      TERRACE_FIELD("record.what", Record, event.what),
      TERRACE_FIELD("record.last_log", Record, event.last_log),
      constant("record.stack", offsetof(Record, stack)),
      whole<Tag>("tag"),
      TERRACE_FIELD("tag.redzone", Tag, redzone),
      TERRACE_FIELD("tag.record", Tag, record),
      TERRACE_FIELD("tag.state", Tag, state),
      constant("pattern.freed", freed_pattern),
      constant("pattern.fresh", fresh_pattern),
      constant("pattern.redzone", redzone_pattern),
      constant("state.allocated", allocated_state),
      constant("state.free", free_state),
      constant("size.factor", size_factor),
  };

  // Entries lie in chunks, behind the chunk's head, up to `used`.
  static constexpr Field of_logs[] = {
      TERRACE_FIELD("log.magic", Log, magic),
      TERRACE_FIELD("log.chunk_count", Log, chunk_count),
      TERRACE_FIELD("log.chunk_bytes", Log, chunk_bytes),
      TERRACE_FIELD("log.chunks", Log, chunks),
      TERRACE_FIELD("log.bytes", Log, bytes),
      TERRACE_FIELD("log.lost", Log, lost),
      whole<LogChunk>("chunk"),
      TERRACE_FIELD("chunk.number", LogChunk, number),
      TERRACE_FIELD("chunk.used", LogChunk, used),
      whole<LogEntry>("entry"),
      TERRACE_FIELD("entry.number", LogEntry, number),
      TERRACE_FIELD("entry.bytes", LogEntry, bytes),
      TERRACE_FIELD("entry.saved", LogEntry, saved),
      TERRACE_FIELD("entry.size", LogEntry, size),
      TERRACE_FIELD("entry.object", LogEntry, event.object),
      TERRACE_FIELD("entry.cache", LogEntry, event.cache),
      TERRACE_FIELD("entry.nanoseconds", LogEntry, event.nanoseconds),
      TERRACE_FIELD("entry.thread", LogEntry, event.thread),
      TERRACE_FIELD("entry.depth", LogEntry, event.depth),
      TERRACE_FIELD("entry.what", LogEntry, event.what),
      TERRACE_FIELD("entry.last_log", LogEntry, event.last_log),
      TERRACE_FIELD("entry.contents", LogEntry, event.contents),
      constant("happened.allocated", static_cast<std::size_t>(Happened::allocated)),
      constant("happened.freed", static_cast<std::size_t>(Happened::freed)),
      constant("happened.failed", static_cast<std::size_t>(Happened::failed)),
      constant("happened.slab_made", static_cast<std::size_t>(Happened::slab_made)),
      constant("happened.held", static_cast<std::size_t>(Happened::held)),
  };

  static constexpr Field of_firewall[] = {
      TERRACE_FIELD("walls.count", Walls, count),
      TERRACE_FIELD("walls.zones", Walls, zones),
      whole<Zone>("zone"),
      TERRACE_FIELD("zone.base", Zone, base),
      TERRACE_FIELD("zone.bytes", Zone, bytes),
      TERRACE_FIELD("zone.addresses", Zone, addresses),
      TERRACE_FIELD("zone.by_page", Zone, by_page),
      whole<Walled>("walled"),
      TERRACE_FIELD("walled.size", Walled, size),
      TERRACE_FIELD("walled.in_use", Walled, in_use),
      constant("walled.record", offsetof(Walled, record)),
      constant("debug.firewall", debug_firewall),
  };

  static constexpr Field of_malloc_tags[] = {
      whole<MallocTag>("malloc_tag"),
      TERRACE_FIELD("malloc_tag.size", MallocTag, size),
      TERRACE_FIELD("malloc_tag.stat", MallocTag, stat),
      constant("malloc_magic.long", magic_long),
      constant("malloc_magic.huge", magic_huge),
      constant("malloc_magic.aligned", magic_aligned),
  };

  static constexpr Field of_arenas[] = {
      TERRACE_FIELD("arenas.first", vmem::ArenaList, head_),
      whole<Arena>("arena"),
      TERRACE_FIELD("arena.name", Arena, name_),
      TERRACE_FIELD("arena.quantum", Arena, quantum_),
      TERRACE_FIELD("arena.source", Arena, source_.arena),
      TERRACE_FIELD("arena.next", Arena, next_),
      TERRACE_FIELD("arena.anchor", Arena, segments_.anchor_),
      TERRACE_FIELD("arena.cached", Arena, caches_.bytes_),
      TERRACE_FIELD("arena.in_use", Arena, in_use_),
      TERRACE_FIELD("arena.total", Arena, total_),
      TERRACE_FIELD("arena.imported", Arena, imported_),
      TERRACE_FIELD("arena.allocations", Arena, allocations_),
      TERRACE_FIELD("arena.frees", Arena, frees_),
      TERRACE_FIELD("arena.failures", Arena, failures_),
      whole<Segment>("segment"),
      TERRACE_FIELD("segment.start", Segment, start),
      TERRACE_FIELD("segment.size", Segment, size),
      TERRACE_FIELD("segment.after", Segment, after),
      TERRACE_FIELD("segment.asked", Segment, asked),
      TERRACE_FIELD("segment.kind", Segment, kind),
      TERRACE_FIELD("segment.imported", Segment, imported),
      constant("segment_kind.span", static_cast<std::size_t>(Segment::Kind::span)),
      constant("segment_kind.free", static_cast<std::size_t>(Segment::Kind::free)),
      constant("segment_kind.allocated", static_cast<std::size_t>(Segment::Kind::allocated)),
      constant("segment_kind.cached", static_cast<std::size_t>(Segment::Kind::cached)),
  };

  static constexpr Descriptor described() {
    auto d = begun<Descriptor>("terrace-umem", descriptor_version);
    Address* a = d.addresses;
    *a++ = address("version", TERRACE_VERSION);
    *a++ = address("caches", &caches);
    *a++ = address("arenas", &vmem::arenas);
    *a++ = address("default_caches", &default_caches);
    *a++ = address("options", &options);
    *a++ = address("walls", &walls);
    *a++ = address("error_buffer", umem_error_buffer);
    *a++ = address("error_begin", &umem_error_begin);
    *a++ = address("log.transaction", &umem_transaction_log);
    *a++ = address("log.contents", &umem_content_log);
    *a++ = address("log.fail", &umem_failure_log);
    *a++ = address("log.slab", &umem_slab_log);
    Field* f = d.fields;
    for (const Field& each : of_caches) *f++ = each;
    for (const Field& each : of_debug) *f++ = each;
    for (const Field& each : of_logs) *f++ = each;
    for (const Field& each : of_firewall) *f++ = each;
    for (const Field& each : of_malloc_tags) *f++ = each;
    for (const Field& each : of_arenas) *f++ = each;
    return d;
  }
  static_assert(std::size(of_caches) + std::size(of_debug) + std::size(of_logs) + std::size(of_firewall) +
                    std::size(of_malloc_tags) + std::size(of_arenas) ==
                described_fields);
};

}  // namespace terrace::umem

extern "C" __attribute__((visibility("default"), TERRACE_RETAINED,
                          section(".terrace_umem"))) constinit const terrace::umem::Descriptor terrace_umem_descriptor =
    terrace::umem::Layout::described();
