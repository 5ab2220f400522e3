// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

namespace terrace::os {

/// Highest possible cpu number + 1, read once: also the bound of mm_cid. At least 1.
unsigned possible_cpus() noexcept;

/// Highest number in a list like "0-3,8-11", of any length, + 1; 0 when there is no such file.
unsigned count_in_list(const char* path) noexcept;

}  // namespace terrace::os
