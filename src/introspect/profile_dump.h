// SPDX-License-Identifier: MIT OR Apache-2.0
// TERRACE_PROFILE=...,dump=PATH: the profile is written before the process is killed for its memory, or fails for want of it.
#pragma once

namespace terrace::introspect {

/// At the start: what writing needs later, when there may be none.
void prepare_profile_dump() noexcept;

}  // namespace terrace::introspect
