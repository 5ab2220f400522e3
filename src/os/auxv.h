// SPDX-License-Identifier: MIT OR Apache-2.0
// What the kernel told the process at its start.
#pragma once

namespace terrace::os {

/// The value of an AT_* entry of the auxiliary vector, 0 when there is none. Needs no constructor and no TLS.
unsigned long auxiliary_value(unsigned long type) noexcept;
/// Set-user-ID and the like: the environment belongs to somebody else and is not to be believed.
bool secure_mode() noexcept;

}  // namespace terrace::os
