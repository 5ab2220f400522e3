// SPDX-License-Identifier: MIT OR Apache-2.0
// `audit`: the last event of an object, in its record and in the logs.
#pragma once

#include "umem/debug.h"

namespace terrace::umem {

/// Memory for an object's record with these flags, without an event; null: no memory. `before`: bytes reserved in front of it.
Record* make_record(const Cache* cache, const void* object, unsigned debug, std::size_t before = 0) noexcept;

/// The object's record has this event then, and leads to its entry of the log. `size`: of the object. With `nosignal` the
/// process ends if a signal handler calls.
void note(Record& record, unsigned debug, std::size_t size, Happened what, const LogEntry* contents = nullptr) noexcept;

/// Copies the object into the log, if there is one and the flags ask for it; else null.
const LogEntry* save_contents(const Record& record, unsigned debug, std::size_t size) noexcept;

}  // namespace terrace::umem
