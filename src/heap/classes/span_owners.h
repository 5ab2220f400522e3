// SPDX-License-Identifier: MIT OR Apache-2.0
// Who takes spans: two parts of this layer, each of which keeps a record of its own in the owner's part of the span's.
#pragma once

#include "span/granule.h"

namespace terrace::heap {

inline constexpr span::State slab_span = span::taken_by(0);   // SlabRecord
inline constexpr span::State large_span = span::taken_by(1);  // LargeRecord

}  // namespace terrace::heap
