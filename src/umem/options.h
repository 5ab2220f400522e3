// SPDX-License-Identifier: MIT OR Apache-2.0
// UMEM_OPTIONS, UMEM_DEBUG and UMEM_LOGGING: the options of libumem (umem_debug(3MALLOC)) and their meaning here. Each is a
// list of items with commas between them; sizes take k, m, g and t. Unknown items are ignored; `verbose` reports them. A
// program may define _umem_options_init(), _umem_debug_init() and _umem_logging_init(), which give the text where the
// environment has no variable of that name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace terrace::umem {

/// As debuggers show them.
enum Debug : unsigned {
  debug_audit = 0x1,         // last event of each object, with a stack
  debug_deadbeef = 0x2,      // patterns in free and in fresh objects
  debug_redzone = 0x4,       // a pattern behind each object
  debug_contents = 0x8,      // what an object held when it was freed, in a log
  debug_checksignal = 0x10,  // a signal handler that allocates or frees ends the process
  debug_nomagazine = 0x20,
  debug_firewall = 0x40,     // pages of its own for each object
  debug_lite = 0x100,        // patterns in the first word only, and a tag
  debug_randomize = 0x400,   // a random choice of the others
  debug_checknull = 0x1000,  // an allocation that would give NULL ends the process
};
/// Options that require a check of each object.
inline constexpr unsigned debug_of_objects = debug_audit | debug_deadbeef | debug_redzone | debug_firewall;

/// One of size_add, size_remove, size_clear.
struct SizeChange {
  enum class What : std::uint8_t { none, add, remove, clear } what = What::none;
  std::uint32_t size = 0;
};

struct Options {
  // UMEM_OPTIONS
  bool has_perthread_cache = false;
  std::uint64_t perthread_cache = 0;  // bytes that a slot of the core level may keep; 0: none
  bool no_magazines = false;
  std::uint64_t reap_interval_s = 10;
  std::array<SizeChange, 24> sizes{};
  unsigned size_changes = 0;
  // UMEM_DEBUG
  unsigned debug = 0;
  unsigned frames = 15;
  std::uint64_t firewall = ~std::uint64_t{0};  // objects from that size on have pages of their own
  std::uint64_t verify = ~std::uint64_t{0};    // bytes of an object that are compared with patterns
  std::uint64_t contents = 256;                // bytes of an object that go into the log
  std::uint32_t mtbf = 0;
  bool verbose = false, no_abort = false;
  bool tells_all = false;  // also events that are no errors
  // UMEM_LOGGING: bytes; 0: none
  std::uint64_t transaction_log = 0, content_log = 0, failure_log = 0, slab_log = 0;
};

/// Called with each unknown item or invalid value.
using Complain = void (*)(const char* variable, const char* item, std::size_t length, const char* why);

void parse_options(const char* text, Options& out, Complain complain) noexcept;
void parse_debug(const char* text, Options& out, Complain complain) noexcept;
void parse_logging(const char* text, Options& out, Complain complain) noexcept;

extern Options options __attribute__((visibility("hidden")));

/// Whether objects of that size are firewalled, as far as their cache does not mind.
inline bool is_to_be_walled(std::size_t size) noexcept { return size >= options.firewall; }

}  // namespace terrace::umem
