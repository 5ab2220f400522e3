// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

namespace terrace::os {

/// The value of a variable, or null: also null in secure mode. Works before libc's own start-up is over.
const char* environment(const char* name) noexcept;

}  // namespace terrace::os
