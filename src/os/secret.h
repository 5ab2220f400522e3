// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <cstdint>

namespace terrace::os {

/// A number that other processes do not know; another one for each `purpose`. From the random bytes that the kernel gives a
/// process at its start: a system call for more may be denied, or kill.
std::uint64_t process_secret(std::uint64_t purpose) noexcept;

}  // namespace terrace::os
