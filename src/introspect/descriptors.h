// SPDX-License-Identifier: MIT OR Apache-2.0
// What a debugger needs to read the heap from outside: of a live process, whose memory it reads without stopping it and
// without calling into it, or of a core file. `terrace findleaks` and the others (tools/terrace/debug) have no offset of their
// own: all come from here, by name.
//
// One object, terrace_debug_descriptor, in the section .terrace_debug. What umem adds is in umem/descriptors.h.
#pragma once

#include "base/descriptor.h"

namespace terrace::introspect {

using describe::Address, describe::Field;

inline constexpr unsigned descriptor_version = 1;
inline constexpr unsigned described_addresses = 8;
inline constexpr unsigned described_fields = 191;

using Descriptor = describe::Descriptor<described_addresses, described_fields>;  // magic "terrace-debug"

}  // namespace terrace::introspect

extern "C" __attribute__((visibility("default"), section(".terrace_debug")))
const terrace::introspect::Descriptor terrace_debug_descriptor;
