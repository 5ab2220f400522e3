// SPDX-License-Identifier: MIT OR Apache-2.0
// The two owners of spans in this layer. Each keeps its own record in the owner's part of the span's record.
#pragma once

#include "span/granule.h"

namespace terrace::heap {

inline constexpr span::State slab_span = span::taken_by(0);   // SlabRecord
inline constexpr span::State large_span = span::taken_by(1);  // LargeRecord

}  // namespace terrace::heap
