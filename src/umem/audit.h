// SPDX-License-Identifier: MIT OR Apache-2.0
// `audit`: who did what last, in an object's record and in the logs.
#pragma once

#include "umem/debug.h"

namespace terrace::umem {

/// Memory for a record of an object with these flags, in which nothing has happened yet; null when there is none. `before`:
/// bytes of something else in front of it.
Record* make_record(const Cache* cache, const void* object, unsigned debug, std::size_t before = 0) noexcept;

/// The object's record has this event then, and leads to its entry of the log. `size`: of the object. With `nosignal` the
/// process ends if a signal handler calls.
void note(Record& record, unsigned debug, std::size_t size, Happened what, const LogEntry* contents = nullptr) noexcept;

/// What the object holds goes into the log, if there is one and the flags say so; else null.
const LogEntry* save_contents(const Record& record, unsigned debug, std::size_t size) noexcept;

}  // namespace terrace::umem
