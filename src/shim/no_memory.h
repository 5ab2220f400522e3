// SPDX-License-Identifier: MIT OR Apache-2.0
// What operator new does when there is no memory ([new.delete.single]): the only code that needs a C++ runtime. no_memory.cpp
// is compiled twice: for shared objects, which look for a runtime when they need it, and for the archive, which is linked to
// one.
#pragma once

#include <cstddef>

namespace terrace::shim {

/// Null: no memory. May throw where its caller says so.
using Attempt = void* (*)(std::size_t alignment, std::size_t size);

/// Calls the new handler and tries again, for as long as there is a handler; null after that. Throws what the handler throws.
void* retry(Attempt attempt, std::size_t alignment, std::size_t size);
/// The same, and std::bad_alloc in place of null.
void* retry_or_throw(Attempt attempt, std::size_t alignment, std::size_t size);
/// What `attempt` gives; null if it throws.
void* or_null(Attempt attempt, std::size_t alignment, std::size_t size) noexcept;

}  // namespace terrace::shim
