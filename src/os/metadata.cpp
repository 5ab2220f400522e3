// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/metadata.h"

#include "base/counter.h"
#include "base/hardened.h"
#include "os/guard_pages.h"

namespace terrace::os {
namespace {

constinit SharedCounter mapped[metadata_count];

}  // namespace

std::uint64_t metadata_bytes(Metadata purpose) noexcept { return mapped[static_cast<std::size_t>(purpose)].read(); }

void count_metadata(Metadata purpose, std::uint64_t bytes) noexcept { mapped[static_cast<std::size_t>(purpose)].add(bytes); }

void* map_metadata(Metadata purpose, std::size_t bytes) noexcept {
  if (bytes > ~std::size_t{0} / 2) return nullptr;  // rounded up, and with guards, it would wrap
  const bool guarded = hardened || purpose == Metadata::checks;
  void* const p = guarded ? map_between_guards(bytes) : map(bytes);
  if (p != nullptr) count_metadata(purpose, round_up(bytes, page_size()));
  return p;
}

}  // namespace terrace::os
