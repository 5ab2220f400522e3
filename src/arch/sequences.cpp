// SPDX-License-Identifier: MIT OR Apache-2.0
#include "arch/sequences.h"

std::uint64_t terrace_abort_counts[256];
std::uint32_t terrace_delays[2];
