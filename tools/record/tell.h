// SPDX-License-Identifier: MIT OR Apache-2.0
// What is in a trace, on standard output.
#pragma once

#include "reader.h"

namespace terrace::trace {

/// One object of JSON.
void tell_summary(const Trace& trace);

}  // namespace terrace::trace
