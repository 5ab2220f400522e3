// SPDX-License-Identifier: MIT OR Apache-2.0
// include/terrace/cs.h
#include "terrace/cs.h"

#include "base/attributes.h"
#include "percpu/transaction.h"

using namespace terrace;  // NOLINT(google-build-using-namespace): this file is nothing but the names

namespace {

int code(arch::Sequence r) noexcept {
  switch (r) {
    case arch::Sequence::done: return TERRACE_CS_OK;
    case arch::Sequence::empty: return TERRACE_CS_EMPTY;
    case arch::Sequence::full: return TERRACE_CS_FULL;
    case arch::Sequence::occupied: return TERRACE_CS_OCCUPIED;
    case arch::Sequence::corrupt: return TERRACE_CS_CORRUPT;
    case arch::Sequence::mismatch: return TERRACE_CS_MISMATCH;
    case arch::Sequence::no_slot: return TERRACE_CS_NO_SLOT;
    case arch::Sequence::freed_twice:
    case arch::Sequence::invalid: break;
  }
  return TERRACE_CS_INVALID;
}

arch::Words words(const terrace_cs_words& w) noexcept { return {.base = static_cast<std::byte*>(w.words), .stride = w.stride}; }

}  // namespace

extern "C" {

TERRACE_EXPORT unsigned terrace_cs_slots() { return percpu::slot_count(); }
TERRACE_EXPORT int terrace_cs_begin() { return percpu::begin(); }
TERRACE_EXPORT int terrace_cs_reopen(int slot) { return percpu::reopen(slot) ? TERRACE_CS_OK : TERRACE_CS_INVALID; }
TERRACE_EXPORT int terrace_cs_valid() { return percpu::valid() ? 1 : 0; }
TERRACE_EXPORT void terrace_cs_end() { percpu::invalidate(); }
TERRACE_EXPORT void terrace_cs_invalidate() { percpu::invalidate(); }
TERRACE_EXPORT int terrace_cs_store32(void* address, std::int32_t value) {
  return code(percpu::store32(address, static_cast<std::uint32_t>(value)));
}
TERRACE_EXPORT int terrace_cs_store64(void* address, std::int64_t value) {
  return code(percpu::store64(address, static_cast<std::uint64_t>(value)));
}
TERRACE_EXPORT int terrace_cs_cas32(std::int32_t value, std::int32_t expected, void* address) {
  return code(percpu::compare_exchange32(address, static_cast<std::uint32_t>(expected), static_cast<std::uint32_t>(value)));
}
TERRACE_EXPORT int terrace_cs_cas64(std::int64_t value, std::int64_t expected, void* address) {
  return code(percpu::compare_exchange64(address, static_cast<std::uint64_t>(expected), static_cast<std::uint64_t>(value)));
}
TERRACE_EXPORT int terrace_cs_pop(terrace_cs_words where, void** block) { return code(percpu::pop(words(where), *block)); }
TERRACE_EXPORT int terrace_cs_push(terrace_cs_words where, unsigned cap, void* block) {
  return code(percpu::push(words(where), cap, block));
}
TERRACE_EXPORT int terrace_cs_take_all(terrace_cs_words where, std::uint64_t* chain) {
  return code(percpu::take_all(words(where), *chain));
}
TERRACE_EXPORT int terrace_cs_put_all(terrace_cs_words where, std::uint64_t chain) {
  return code(percpu::put_all(words(where), chain));
}
TERRACE_EXPORT int terrace_cs_bump(terrace_cs_words where, std::size_t bytes, std::uint64_t* start) {
  return code(percpu::bump(words(where), bytes, *start));
}

}  // extern "C"
