// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

namespace terrace::os {

/// Highest possible cpu number + 1, read once: also the bound of mm_cid. At least 1.
unsigned possible_cpus() noexcept;

}  // namespace terrace::os
