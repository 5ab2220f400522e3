// SPDX-License-Identifier: MIT OR Apache-2.0
// What the handlers of fork do, for a child that gets a copy of the memory otherwise. libc's own list of files is not locked
// then, as libc would not unlock it in the child.
#pragma once

namespace terrace::shim {

void before_copy() noexcept;
void copied_in_parent() noexcept;
void copied_in_child() noexcept;

}  // namespace terrace::shim
