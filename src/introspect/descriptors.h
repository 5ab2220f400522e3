// SPDX-License-Identifier: MIT OR Apache-2.0
// What a debugger needs to read the heap from outside: of a live process, whose memory it reads without stopping it and
// without calling into it, or of a core file. `terrace findleaks` and the others (tools/terrace/debug) have no offset of their
// own: all come from here, by name.
//
// One object, terrace_debug_descriptor, in a section of its own, so that it is found in programs without symbols, too. A reader
// compares magic and version, then goes by names. The version rises when the meaning of a name changes, not when one is added.
#pragma once

#include <cstdint>

namespace terrace::introspect {

/// Where something is in the process.
struct Address {
  char name[24];
  const void* at;
};

/// A field of a structure: `count` elements of `size` bytes. With size 0 a constant, whose value is `offset`.
struct Field {
  char name[28];
  std::uint32_t offset, size, count;
};

inline constexpr unsigned descriptor_version = 1;
inline constexpr unsigned described_addresses = 6;
inline constexpr unsigned described_fields = 128;

struct Descriptor {
  char magic[16];  // "terrace-debug"
  std::uint32_t version;
  std::uint32_t header_bytes, address_bytes, address_count, field_bytes, field_count;
  Address addresses[described_addresses];  // at header_bytes
  Field fields[described_fields];          // behind them
};

}  // namespace terrace::introspect

extern "C" __attribute__((visibility("default"))) const terrace::introspect::Descriptor terrace_debug_descriptor;
