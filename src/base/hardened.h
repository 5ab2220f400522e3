// SPDX-License-Identifier: MIT OR Apache-2.0
// The hardened build (CMake: TERRACE_HARDENED): the same sources, with what costs time and memory to make an attack on the heap
// a matter of luck. docs/guide/misuse.md has what it does, docs/adr has why.
#pragma once

namespace terrace {

#if defined(TERRACE_HARDENED)
inline constexpr bool hardened = true;
#else
inline constexpr bool hardened = false;
#endif

}  // namespace terrace
