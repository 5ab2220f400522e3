// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/debug.h"

#include "heap/heap.h"
#include "os/clock.h"
#include "os/io.h"
#include "os/stack.h"
#include "umem/messages.h"
#include "umem/options.h"

#include <cstring>

namespace terrace::umem {

using heap::heap;

namespace {

constexpr std::uint64_t freed_pattern = 0xdeadbeefdeadbeef, fresh_pattern = 0xbaddcafebaddcafe;
constexpr std::uint64_t redzone_pattern = 0xfeedfacefeedface;
constexpr std::uint64_t allocated_state = 0xa110c8eda110c8ed, free_state = 0xf4eef4eef4eef4ee;
constexpr std::byte size_byte{0xbb};  // behind what was asked for
constexpr std::uint32_t size_code(std::size_t size) noexcept { return static_cast<std::uint32_t>(251 * size + 1); }

enum class Fault : std::uint8_t {
  modified,
  redzone,
  duplicate_free,
  bad_address,
  bad_tag,
  bad_record,
  wrong_cache,
  bad_size,
  bad_base
};

std::uint64_t address_in(const Record* r) noexcept { return reinterpret_cast<std::uint64_t>(r); }

Tag& tag_of(const Cache& c, void* object) noexcept {
  return *reinterpret_cast<Tag*>(static_cast<std::byte*>(object) + tag_offset(c.size));
}

// What is filled and compared of an object, in words.
std::size_t words_of(const Cache& c) noexcept {
  return static_cast<std::size_t>(min_of<std::uint64_t>(tag_offset(c.size), options.verify) / sizeof(std::uint64_t));
}
void fill(const Cache& c, void* object, std::uint64_t pattern) noexcept {
  if ((c.debug & debug_deadbeef) == 0) return;
  auto* const words = static_cast<std::uint64_t*>(object);
  for (std::size_t i = 0; i < words_of(c); ++i) words[i] = pattern;
}
// The first word that is not as it should be; null when all are.
const std::uint64_t* changed_word(const Cache& c, const void* object) noexcept {
  if ((c.debug & debug_deadbeef) == 0) return nullptr;
  const auto* const words = static_cast<const std::uint64_t*>(object);
  for (std::size_t i = 0; i < words_of(c); ++i) {
    if (words[i] != freed_pattern) return &words[i];
  }
  return nullptr;
}

struct Details {
  const std::uint64_t* word = nullptr;  // modified
  std::uint64_t found = 0, wanted = 0;  // bad_tag: states; bad_size: sizes
  const Cache* other = nullptr;         // wrong_cache
  const void* base = nullptr;           // bad_base
};

void say_what(Fault fault, const Cache& c, const void* object, const Details& d) noexcept {
  Message m;
  m.text("umem allocator: ");
  switch (fault) {
    case Fault::modified:
      m.text("buffer modified after being freed\nmodification occurred at offset 0x")
          .hex(address_of(d.word) - address_of(object))
          .text(" (0x")
          .hex(freed_pattern)
          .text(" replaced by 0x")
          .hex(*d.word)
          .text(")");
      break;
    case Fault::redzone: m.text("redzone violation: write past end of buffer"); break;
    case Fault::duplicate_free: m.text("duplicate free: buffer freed twice"); break;
    case Fault::bad_address: m.text("invalid free: buffer not in cache"); break;
    case Fault::bad_tag:
      m.text("boundary tag corrupted\nbcp ^ bxstat = ").hex(d.found).text(", should be ").hex(d.wanted);
      break;
    case Fault::bad_record: m.text("bufctl corrupted"); break;
    case Fault::wrong_cache:
      m.text("buffer freed to wrong cache\nbuffer was allocated from ")
          .text(d.other->name)
          .text(",\ncaller attempting free to ")
          .text(c.name)
          .text(".");
      break;
    case Fault::bad_size:
      m.text("bad free: free size (").decimal(d.found).text(") != alloc size (").decimal(d.wanted).text(")");
      break;
    case Fault::bad_base:
      m.text("bad free: free address (").pointer(object).text(") != alloc address (").pointer(d.base).text(")");
      break;
  }
  m.text("\n");
}

void say_time(const Record& r, const void* object, std::uint64_t ago) noexcept {
  Message m;
  m.text("previous transaction on buffer ").pointer(object).text(":\nthread=").decimal(r.event.thread).text("  time=T-");
  m.decimal(ago / 1'000'000'000).text(".");
  char digits[10];  // nine, with zeroes in front
  std::uint64_t rest = ago % 1'000'000'000;
  for (int i = 8; i >= 0; --i, rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
  m.text({digits, 9}).text("  slab=").pointer(heap.slab_start(object)).text("  cache: ").text(r.event.cache->name).text("\n");
}

void say_last_transaction(const Record& r, const void* object) noexcept {
  if (r.event.what == Happened::nothing) return;
  const std::uint64_t ago = os::monotonic_nanoseconds() - r.event.nanoseconds;
  say_time(r, object, ago);
  say_stack(r.stack, r.event.depth);
}

// All that is known; then the end, unless `noabort`.
void report(Fault fault, const Cache& c, const void* object, const Record* record, const Details& details = {}) noexcept {
  say_what(fault, c, object, details);
  Message().text("buffer=").pointer(object).text("  bufctl=").pointer(record).text("  cache: ").text(c.name).text("\n");
  if (record != nullptr && (c.debug & debug_audit) != 0) say_last_transaction(*record, object);
  heap_is_corrupt();
}

bool record_is_sound(const Cache& c, const Record* r, const void* object) noexcept {
  return r != nullptr && heap.is_plain(r) && r->event.object == object && r->event.cache == &c;
}

std::size_t frames_of(const Cache& c) noexcept { return (c.debug & debug_audit) != 0 ? options.frames : 0; }

// The record's event is the last one then; each entry of the log leads to the one before it.
void note(const Cache& c, Record& r, Happened what, const LogEntry* contents = nullptr) noexcept {
  if ((c.debug & debug_audit) == 0) return;
  Event& e = r.event;
  e.nanoseconds = os::monotonic_nanoseconds();
  e.thread = static_cast<std::uint32_t>(os::thread_id());
  e.depth = static_cast<std::uint16_t>(os::capture_stack(r.stack, options.frames));
  e.what = what;
  e.contents = contents;
  if (umem_transaction_log == nullptr) return;
  const LogEntry* const entry = umem_transaction_log->add(e, c.size, r.stack, e.depth * sizeof(void*));
  if (entry != nullptr) e.last_log = entry;
}

// What the object holds, into the log.
const LogEntry* save_contents(const Cache& c, const void* object) noexcept {
  if ((c.debug & debug_audit) == 0 || (c.debug & debug_contents) == 0 || umem_content_log == nullptr) return nullptr;
  const Event e{.object = object,
                .cache = &c,
                .nanoseconds = os::monotonic_nanoseconds(),
                .thread = static_cast<std::uint32_t>(os::thread_id()),
                .depth = 0,
                .what = Happened::held,
                .last_log = nullptr,
                .contents = nullptr};
  return umem_content_log->add(e, c.size, object, min_of<std::uint64_t>(c.size, options.contents));
}

// An object that has just left its slab. False: there is no memory for its record.
bool prepare(Cache& c, void* object) noexcept {
  const std::size_t bytes = sizeof(Record) + frames_of(c) * sizeof(void*);
  auto* const r = static_cast<Record*>(heap.allocate_plain(bytes, alignof(Record)));
  if (r == nullptr) return false;
  r->event = {.object = object,
              .cache = &c,
              .nanoseconds = 0,
              .thread = 0,
              .depth = 0,
              .what = Happened::nothing,
              .last_log = nullptr,
              .contents = nullptr};
  fill(c, object, freed_pattern);
  tag_of(c, object) = {.redzone = redzone_pattern, .record = r, .state = address_in(r) ^ free_state};
  return true;
}

void check_untouched(const Cache& c, const void* object, const Record* r) noexcept {
  if (const std::uint64_t* const word = changed_word(c, object)) report(Fault::modified, c, object, r, {.word = word});
}

// Of an object that is in the state: whether tag and record are sound.
bool check_tag(const Cache& c, void* object, std::uint64_t state) noexcept {
  const Tag& t = tag_of(c, object);
  if ((t.state ^ address_in(t.record)) == state && record_is_sound(c, t.record, object)) return true;
  const std::uint64_t found = t.state ^ address_in(t.record);
  if (found == state) {
    report(Fault::bad_record, c, object, nullptr);
  } else if (state == allocated_state && found == free_state && record_is_sound(c, t.record, object)) {
    report(Fault::duplicate_free, c, object, t.record);
  } else {
    report(Fault::bad_tag, c, object, nullptr, {.found = found, .wanted = state});
  }
  return false;
}

bool construct(const Cache& c, void* object) noexcept {
  return c.construct == nullptr || c.construct(object, c.private_data, UMEM_DEFAULT) == 0;
}

// From allocated to free, but for the record of who did it.
void make_free(const Cache& c, void* object) noexcept {
  fill(c, object, freed_pattern);
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
  bool raw = false;
  const bool keeps = (c.debug & debug_nomagazine) == 0 && (c.flags & UMC_NOMAGAZINE) == 0;
  void* const object = keeps ? heap.levels().allocate_object(c.home, raw) : heap.levels().allocate_raw_object(c.home);
  if (object == nullptr) return nullptr;
  log_slab(c);
  if ((raw || !keeps) && !prepare(c, object)) {
    heap.levels().free_raw(object);
    return nullptr;
  }
  if (check_tag(c, object, free_state)) {
    check_untouched(c, object, tag_of(c, object).record);
  } else if (!prepare(c, object)) {  // with `noabort`: what its tag says of a record is worth nothing
    return nullptr;
  }
  Tag& t = tag_of(c, object);
  fill(c, object, fresh_pattern);
  t.redzone = redzone_pattern;
  t.state = address_in(t.record) ^ allocated_state;
  note(c, *t.record, Happened::allocated);
  if (construct(c, object)) return object;
  make_free(c, object);
  heap.levels().free_object(object, c.home);
  return nullptr;
}

void debug_free(Cache& c, void* object) noexcept {
  if (!heap.slabs().is_object_of(c.home, object)) {
    const Cache* const other = cache_of(object);
    if (other != nullptr && other != &c) return report(Fault::wrong_cache, c, object, nullptr, {.other = other});
    const void* const base = other != nullptr ? heap.slabs().block_holding(c.home, object) : nullptr;
    if (base != nullptr) return report(Fault::bad_base, c, object, nullptr, {.base = base});
    return report(Fault::bad_address, c, object, nullptr);
  }
  if (!check_tag(c, object, allocated_state)) return;  // with `noabort`: it is not freed
  const Tag& t = tag_of(c, object);
  if (t.redzone != redzone_pattern) report(Fault::redzone, c, object, t.record);
  const LogEntry* const contents = save_contents(c, object);
  if (c.destruct != nullptr) c.destruct(object, c.private_data);
  note(c, *t.record, Happened::freed, contents);
  make_free(c, object);
  if ((c.debug & debug_nomagazine) == 0 && (c.flags & UMC_NOMAGAZINE) == 0) return heap.levels().free_object(object, c.home);
  forget_object(&c, object);
  heap.levels().free_raw(object);
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
  if ((c.debug & debug_redzone) == 0 || !heap.slabs().is_object_of(c.home, object)) return;  // said by debug_free()
  Tag& t = tag_of(c, object);
  if ((t.state ^ address_in(t.record)) != allocated_state || !record_is_sound(c, t.record, object)) return;
  const std::uint32_t code = code_in(t);
  if (code != size_code(size)) {
    const bool is_a_size = code % 251 == 1 && code / 251 <= c.size;
    if (is_a_size)
      report(Fault::bad_size, c, object, t.record, {.found = size, .wanted = code / 251});
    else
      report(Fault::redzone, c, object, t.record);
  } else if (static_cast<const std::byte*>(object)[size] != size_byte) {
    report(Fault::redzone, c, object, t.record);
  }
  // Where all bytes up to the tag were asked for, the one behind them is the first of the redzone.
  const auto whole = static_cast<std::uint32_t>(redzone_pattern);
  const std::uint32_t wanted = size == tag_offset(c.size) ? (whole & ~0xffU) | static_cast<std::uint32_t>(size_byte) : whole;
  t.redzone = static_cast<std::uint32_t>(t.redzone) == wanted ? redzone_pattern : 0;  // debug_free() says so
}

bool is_to_fail() noexcept {
  const std::uint32_t rate = options.mtbf;
  return rate != 0 && os::monotonic_nanoseconds() % rate == 0;
}

}  // namespace terrace::umem
