// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/flags.h"

#include "base/random.h"
#include "os/clock.h"
#include "umem/debug.h"

namespace terrace::umem {
namespace {

constexpr unsigned touching = debug_deadbeef | debug_redzone | debug_contents | debug_lite;
constexpr unsigned of_records = debug_audit | debug_contents | debug_checksignal;
constexpr std::size_t lite_bytes = 8, not_lite = 1024;

unsigned any_flags(const Wanted& w) noexcept {
  static constinit std::uint64_t caches = 0;  // racing threads may get the same number
  const auto random = static_cast<unsigned>(mixed(os::monotonic_nanoseconds() ^ w.size << 48 ^ ++caches << 32));
  return random & (debug_audit | debug_deadbeef | debug_redzone | debug_contents | debug_nomagazine);
}

// No records, and nothing at all of caches whose objects fill pages exactly: with a tag they would not.
unsigned made_lite(unsigned debug, std::size_t size) noexcept {
  if (size % not_lite == 0) return debug & ~(debug_of_objects | of_records | debug_lite);
  return debug & ~(of_records | debug_firewall);
}

}  // namespace

unsigned debug_flags_of(const Wanted& w) noexcept {
  unsigned debug = options.debug;
  if ((debug & debug_randomize) != 0) debug |= any_flags(w);
  if (w.serves_sizes || w.source != nullptr || !is_to_be_walled(w.size)) debug &= ~static_cast<unsigned>(debug_firewall);
  if ((debug & debug_lite) != 0) debug = made_lite(debug, w.size);
  if ((w.flags & UMC_NODEBUG) != 0) debug = 0;
  if ((w.flags & UMC_NOTOUCH) != 0) debug &= ~touching;
  if ((w.flags & UMC_NOHASH) != 0) debug &= ~(of_records | debug_firewall);
  if (options.no_magazines) debug |= debug_nomagazine;
  return debug;
}

std::size_t verified_bytes(std::size_t size, unsigned debug) noexcept {
  const std::uint64_t most = (debug & debug_lite) != 0 ? lite_bytes : options.verify;
  return static_cast<std::size_t>(min_of<std::uint64_t>(tag_offset(size), most));
}

}  // namespace terrace::umem
