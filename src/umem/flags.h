// SPDX-License-Identifier: MIT OR Apache-2.0
// What UMEM_DEBUG and UMEM_OPTIONS mean for one cache.
#pragma once

#include "umem/cache.h"

namespace terrace::umem {

/// Of enum Debug.
unsigned debug_flags_of(const Wanted& wanted) noexcept;
/// Bytes of an object, from its first on, that hold patterns while it is free.
std::size_t verified_bytes(std::size_t size, unsigned debug) noexcept;

}  // namespace terrace::umem
