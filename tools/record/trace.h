// SPDX-License-Identifier: MIT OR Apache-2.0
// A trace: every call of malloc and its relatives that a process made, in an order in which they may be made again.
//
// The file, version 1; numbers are little endian:
//
//   header   one page of 4096 bytes, struct FileHeader
//   chunks   each begins on a multiple of 4096 with a ChunkHeader and belongs to one thread; `bytes` is its length with the
//            header, a multiple of 4096, `used` how many bytes of events follow the header. A thread's chunks stand in the
//            order in which they were filled; those of several threads in any. A page that begins with zero instead of a
//            chunk was reserved when the process ended: it is skipped.
//   event    one byte: the kind in the low 3 bits, above them the sequence number minus that of the event before it in the
//            chunk (of the first: minus the chunk's `sequence`). 31 there says that a number follows, which is added.
//            Then what the kind has of: address released, log2 of the alignment (a byte), size, sequence number of the end
//            minus that of the beginning, address allocated (see `layout`).
//   number   7 bits a byte, lowest first; the high bit says that more follow
//   address  the difference d to the address before it in the chunk, at first to 0: as a number, d / 16 with the sign in bit
//            1, and in bit 0 whether d % 16 is not zero; it then follows as a byte.
//
// Sequence numbers are the process's: no two are alike, some may be missing. That of an allocation was taken after the call,
// that of a release before it, so a block that another thread frees was allocated before in this order, and an address that
// is allocated again was freed before. realloc has two: at its beginning the old block goes, at its end the new one comes.
// The order of two threads' calls is not told beyond that. A child of fork has a trace of its own, in which its parent's
// blocks appear only when they are released.
//
// Failed calls and free(NULL) are left out; realloc(NULL, n) is a malloc; realloc(p, 0) that gave NULL is a free.
#pragma once

#include <cstddef>
#include <cstdint>

namespace terrace::trace {

inline constexpr char file_magic[8] = {'T', 'r', 'a', 'c', 'e', 'T', 'e', '1'};
inline constexpr std::uint32_t file_version = 1;
inline constexpr std::uint32_t chunk_magic = 0x6b6e6843;  // "Chnk"
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::uint64_t no_address = 0;

struct FileHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t incomplete;  // not 0: the recorder had to stop, because of this errno
  std::uint64_t process;     // its id
  std::uint64_t parent;      // id of the process that it was forked from while that was recorded, or 0
  char command[16];          // the process's name when the first call was recorded
};
static_assert(sizeof(FileHeader) == 48 && sizeof(FileHeader) <= page_bytes);

struct ChunkHeader {
  std::uint32_t magic;
  std::uint32_t bytes;
  std::uint32_t thread;  // 0, 1, ... in the order of the threads' first calls
  std::uint32_t used;
  std::uint64_t sequence;
};
static_assert(sizeof(ChunkHeader) == 24);

enum class Kind : std::uint8_t { malloc = 1, calloc, aligned, realloc, free };

struct Event {
  Kind kind = Kind::free;
  std::uint8_t alignment_log2 = 0;       // aligned
  std::uint64_t sequence = 0;            // realloc: of the beginning
  std::uint64_t end_sequence = 0;        // realloc
  std::uint64_t released = no_address;   // realloc, free
  std::uint64_t allocated = no_address;  // all but free
  std::uint64_t size = 0;                // all but free; of calloc the product
};

struct Layout {
  bool releases;
  bool allocates;
};
inline constexpr Layout layout(Kind kind) { return {kind == Kind::realloc || kind == Kind::free, kind != Kind::free}; }

/// What the differences within a chunk are to.
struct Before {
  std::uint64_t sequence = 0;
  std::uint64_t address = 0;
};

inline constexpr unsigned kind_bits = 3;
inline constexpr std::uint64_t long_step = 31;
/// No event is longer: the first byte, a long step, two addresses, an alignment, a size, an end.
inline constexpr std::size_t longest_event = 1 + 10 + 2 * 11 + 1 + 10 + 10;

inline unsigned char* put_number(unsigned char* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<unsigned char>(value | 0x80);
  *to++ = static_cast<unsigned char>(value);
  return to;
}

inline unsigned char* put_address(unsigned char* to, std::uint64_t address, Before& before) {
  const std::uint64_t difference = address - before.address;
  before.address = address;
  const std::uint64_t rest = difference & 15;
  const bool negative = difference >> 63 != 0;
  const std::uint64_t magnitude = negative ? ~difference >> 4 : difference >> 4;  // -1 - d / 16, rounded down, or d / 16
  to = put_number(to, magnitude << 2 | (negative ? 2U : 0U) | (rest != 0 ? 1U : 0U));
  if (rest != 0) *to++ = static_cast<unsigned char>(rest);
  return to;
}

/// Writes at most longest_event bytes; returns the end of what was written.
inline unsigned char* put_event(unsigned char* to, const Event& event, Before& before) {
  const std::uint64_t step = event.sequence - before.sequence;
  const std::uint64_t head = step < long_step ? step : long_step;
  *to++ = static_cast<unsigned char>(head << kind_bits | static_cast<unsigned>(event.kind));
  if (head == long_step) to = put_number(to, step - long_step);
  before.sequence = event.sequence;
  if (layout(event.kind).releases) to = put_address(to, event.released, before);
  if (event.kind == Kind::aligned) *to++ = event.alignment_log2;
  if (!layout(event.kind).allocates) return to;
  to = put_number(to, event.size);
  if (event.kind == Kind::realloc) {
    to = put_number(to, event.end_sequence - event.sequence);
    before.sequence = event.end_sequence;
  }
  return put_address(to, event.allocated, before);
}

/// Reads what the functions above wrote; `good` turns false, for good, at the first thing that nothing of them wrote.
class Decoder {
 public:
  Decoder(const unsigned char* from, const unsigned char* end) : at_(from), end_(end) {}

  bool good() const { return good_; }
  bool at_end() const { return at_ == end_; }
  const unsigned char* at() const { return at_; }

  Event event(Before& before) {
    Event event;
    const unsigned head = byte();
    event.kind = static_cast<Kind>(head & ((1U << kind_bits) - 1));
    if (event.kind < Kind::malloc || event.kind > Kind::free) good_ = false;
    std::uint64_t step = head >> kind_bits;
    if (step == long_step) step += number();
    event.sequence = before.sequence = before.sequence + step;
    if (layout(event.kind).releases) event.released = address(before);
    if (event.kind == Kind::aligned) event.alignment_log2 = byte();
    if (event.alignment_log2 > 47) good_ = false;
    if (!layout(event.kind).allocates) return event;
    event.size = number();
    if (event.kind == Kind::realloc) event.end_sequence = before.sequence = event.sequence + number();
    event.allocated = address(before);
    if (event.allocated == no_address || event.size >> 47 != 0) good_ = false;
    return event;
  }

 private:
  unsigned char byte() {
    if (at_ < end_) return *at_++;
    good_ = false;
    return 0;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const unsigned char b = byte();
      value |= std::uint64_t{b & 0x7fU} << shift;
      if (b < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  std::uint64_t address(Before& before) {
    const std::uint64_t head = number();
    const std::uint64_t magnitude = head >> 2 << 4;
    const std::uint64_t rest = (head & 1) != 0 ? byte() : 0;
    if (rest > 15) good_ = false;
    return before.address += ((head & 2) != 0 ? ~(magnitude | 15) : magnitude) | rest;
  }

  const unsigned char* at_;
  const unsigned char* end_;
  bool good_ = true;
};

}  // namespace terrace::trace
