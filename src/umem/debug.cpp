// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/debug.h"

#include "heap/heap.h"
#include "os/clock.h"
#include "umem/audit.h"
#include "umem/faults.h"
#include "umem/firewall.h"
#include "umem/handles.h"
#include "umem/patterns.h"
#include "umem/update.h"

namespace terrace::umem {

using heap::heap;

namespace {

constexpr std::byte size_byte{0xbb};  // behind what was asked for
constexpr std::uint32_t size_code(std::size_t size) noexcept { return static_cast<std::uint32_t>(size_factor * size + 1); }

std::uint64_t address_in(const Record* r) noexcept { return reinterpret_cast<std::uint64_t>(r); }

Tag& tag_of(const Cache& c, void* object) noexcept {
  return *reinterpret_cast<Tag*>(static_cast<std::byte*>(object) + tag_offset(c.size));
}

// Whose object its record says that it is; null: that is no record of it.
const Cache* cache_by_record(const Record* r, const void* object) noexcept {
  return r != nullptr && heap.is_plain(r) && r->event.object == object ? r->event.cache : nullptr;
}
bool record_is_sound(const Cache& c, const Record* r, const void* object) noexcept { return cache_by_record(r, object) == &c; }

bool has(const Cache& c, Debug flag) noexcept { return (c.debug & flag) != 0; }
bool keeps_free_objects(const Cache& c) noexcept { return !has(c, debug_nomagazine) && (c.flags & UMC_NOMAGAZINE) == 0; }

// Memory of the cache's. `raw`: it has no tag yet.
void* take(Cache& c, bool& raw) noexcept {
  if (c.has_class) {
    raw = !keeps_free_objects(c);
    return raw ? heap.levels().allocate_raw_object(c.home) : heap.levels().allocate_object(c.home, raw);
  }
  void* const kept = c.has_handles ? take_handled(c) : nullptr;
  raw = kept == nullptr;
  return raw ? allocate_apart(c) : kept;
}
void give_back(Cache& c, void* object) noexcept {
  if (!c.has_class) return free_apart(c, object);
  heap.levels().free_raw(object);
}
// An object that was made free.
void put(Cache& c, void* object) noexcept {
  if (c.has_class && keeps_free_objects(c)) return heap.levels().free_object(object, c.home);
  if (c.has_handles && keep_handled(c, object)) return;
  forget_object(&c, object);
  give_back(c, object);
}
bool is_object(const Cache& c, const void* object) noexcept {
  if (c.has_class) return heap.slabs().is_object_of(c.home, object);
  return may_be_object(c, object);
}

// An object that has just left its slab. False: there is no memory for its record.
bool prepare(Cache& c, void* object) noexcept {
  Record* const r = make_record(&c, object, c.debug);
  if (r == nullptr) return false;
  if (has(c, debug_deadbeef)) fill(object, c.verify, freed_pattern);
  tag_of(c, object) = {.redzone = redzone_pattern, .record = r, .state = address_in(r) ^ free_state};
  return true;
}

// Null: there is no memory.
void* take_prepared(Cache& c) noexcept {
  bool raw = false;
  void* const object = take(c, raw);
  if (object == nullptr) return nullptr;
  log_slab(c);
  if (!raw || prepare(c, object)) return object;
  give_back(c, object);
  return nullptr;
}

void check_untouched(const Cache& c, const void* object, const Record* r) noexcept {
  if (!has(c, debug_deadbeef)) return;
  if (const std::uint64_t* const word = changed_word(object, c.verify)) report(Fault::modified, &c, object, r, {.word = word});
}

// Of an object that is in the state: whether tag and record are sound.
bool check_tag(const Cache& c, void* object, std::uint64_t state) noexcept {
  const Tag& t = tag_of(c, object);
  if ((t.state ^ address_in(t.record)) == state && record_is_sound(c, t.record, object)) return true;
  const std::uint64_t found = t.state ^ address_in(t.record);
  if (found == state) {
    const Cache* const other = cache_by_record(t.record, object);
    report(other != nullptr ? Fault::wrong_cache : Fault::bad_record, &c, object, nullptr, {.other = other});
  } else if (state == allocated_state && found == free_state && record_is_sound(c, t.record, object)) {
    report(Fault::duplicate_free, &c, object, t.record);
  } else {
    report(Fault::bad_tag, &c, object, nullptr, {.found = found, .wanted = state});
  }
  return false;
}

// From allocated to free, but for the record of who did it.
void make_free(const Cache& c, void* object) noexcept {
  if (has(c, debug_deadbeef)) fill(object, c.verify, freed_pattern);
  Tag& t = tag_of(c, object);
  t.redzone = redzone_pattern;
  t.state = address_in(t.record) ^ free_state;
}

}  // namespace

void forget_object(void* cache, void* object) noexcept {
  const Cache& c = *static_cast<const Cache*>(cache);
  if (!check_tag(c, object, free_state)) return;  // what it has of a record is lost
  Tag& t = tag_of(c, object);
  check_untouched(c, object, t.record);
  heap.free_plain(t.record);
}

void* debug_allocate(Cache& c) noexcept {
  if (has(c, debug_firewall)) return with_reclaim([&] { return allocate_walled(c); });
  void* const object = with_reclaim([&] { return take_prepared(c); });
  if (object == nullptr) return nullptr;
  if (check_tag(c, object, free_state)) {
    check_untouched(c, object, tag_of(c, object).record);
  } else if (!prepare(c, object)) {  // with `noabort`: what its tag says of a record is worth nothing
    return nullptr;
  }
  Tag& t = tag_of(c, object);
  if (has(c, debug_deadbeef)) fill(object, c.verify, fresh_pattern);
  t.redzone = redzone_pattern;
  t.state = address_in(t.record) ^ allocated_state;
  t.record->event.ahead = 0;
  note(*t.record, c.debug, c.size, Happened::allocated);
  if (!construct(c, object)) {
    make_free(c, object);
    put(c, object);
    return nullptr;
  }
  if (!c.has_class) c.allocated.add();
  return object;
}

namespace {

void report_foreign(const Cache& c, const void* object) noexcept {
  const Walled* const walled = walled_at(object);
  const Cache* const other = walled == nullptr ? cache_of(object) : walled->in_use ? walled->record.event.cache : nullptr;
  if (other != nullptr && other != &c) return report(Fault::wrong_cache, &c, object, nullptr, {.other = other});
  const void* const base = other != nullptr && walled == nullptr ? heap.slabs().block_holding(c.home, object) : nullptr;
  if (base != nullptr) return report(Fault::bad_base, &c, object, nullptr, {.base = base});
  report(Fault::bad_address, &c, object, nullptr);
}

}  // namespace

void debug_free(Cache& c, void* object) noexcept {
  if (const Walled* const w = walled_at(object); w != nullptr && w->record.event.cache == &c) {
    free_walled(object, &c, c.size);
    return;
  }
  if (has(c, debug_firewall) || !is_object(c, object)) return report_foreign(c, object);
  if (!check_tag(c, object, allocated_state)) return;  // with `noabort`: it is not freed
  const Tag& t = tag_of(c, object);
  if (has(c, debug_redzone) && t.redzone != redzone_pattern) report(Fault::redzone, &c, object, t.record);
  const LogEntry* const contents = save_contents(*t.record, c.debug, c.size);
  if (c.destruct != nullptr) c.destruct(object, c.private_data);
  note(*t.record, c.debug, c.size, Happened::freed, contents);
  make_free(c, object);
  if (!c.has_class) c.freed.add();
  put(c, object);
}

namespace {

std::uint32_t& code_in(Tag& t) noexcept { return reinterpret_cast<std::uint32_t*>(&t.redzone)[1]; }

}  // namespace

void mark_size(const Cache& c, void* object, std::size_t size) noexcept {
  if ((c.debug & debug_redzone) == 0) return;
  static_cast<std::byte*>(object)[size] = size_byte;
  code_in(tag_of(c, object)) = size_code(size);
}

void check_size(const Cache& c, void* object, std::size_t size) noexcept {
  if ((c.debug & debug_redzone) == 0 || !is_object(c, object)) return;  // said by debug_free()
  Tag& t = tag_of(c, object);
  if ((t.state ^ address_in(t.record)) != allocated_state || !record_is_sound(c, t.record, object)) return;
  const std::uint32_t code = code_in(t);
  if (code != size_code(size)) {
    const bool is_a_size = code % size_factor == 1 && code / size_factor <= c.size;
    if (is_a_size)
      report(Fault::bad_size, &c, object, t.record, {.found = size, .wanted = code / size_factor});
    else
      report(Fault::redzone, &c, object, t.record);
  } else if (static_cast<const std::byte*>(object)[size] != size_byte) {
    report(Fault::redzone, &c, object, t.record);
  }
  // Where all bytes up to the tag were asked for, the one behind them is the first of the redzone.
  const auto whole = static_cast<std::uint32_t>(redzone_pattern);
  const std::uint32_t wanted = size == tag_offset(c.size) ? (whole & ~0xffU) | static_cast<std::uint32_t>(size_byte) : whole;
  t.redzone = static_cast<std::uint32_t>(t.redzone) == wanted ? redzone_pattern : 0;  // debug_free() says so
}

void note_block(const Cache* c, void* object, const void* p) noexcept {
  if (c != nullptr && !is_debugged(*c)) return;
  Record& r = c != nullptr ? *tag_of(*c, object).record : walled_at(object)->record;
  const std::size_t ahead = (address_of(p) - address_of(object)) / ahead_unit;
  if (ahead <= 0xffff) r.event.ahead = static_cast<std::uint16_t>(ahead);
}

const void* block_in(const Record& r) noexcept {
  return r.event.ahead == 0 ? nullptr : static_cast<const std::byte*>(r.event.object) + r.event.ahead * ahead_unit;
}

bool is_to_fail() noexcept {
  const std::uint32_t rate = options.mtbf;
  return rate != 0 && os::monotonic_nanoseconds() % rate == 0;
}

}  // namespace terrace::umem
