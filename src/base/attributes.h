// SPDX-License-Identifier: MIT OR Apache-2.0
// Attributes. The other macros of the tree are those of the restartable sequences, and the assertion.
#pragma once

#define TERRACE_EXPORT __attribute__((visibility("default")))
#define TERRACE_REPLACEABLE __attribute__((weak, visibility("default")))
#define TERRACE_COLD __attribute__((cold, noinline))
#define TERRACE_INLINE __attribute__((always_inline)) inline
