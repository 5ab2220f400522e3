// SPDX-License-Identifier: MIT OR Apache-2.0
// The only macros of the tree besides those of the restartable sequences: attributes.
#pragma once

#define TERRACE_EXPORT __attribute__((visibility("default")))
#define TERRACE_COLD __attribute__((cold, noinline))
#define TERRACE_INLINE __attribute__((always_inline)) inline
