// SPDX-License-Identifier: MIT OR Apache-2.0
// A debugger reads the heap of a process, or of a core file, by the descriptors in introspect/descriptors.h: where each field
// lies that it needs. Classes whose fields are described befriend Layout, which takes their offsets and nothing else.
#pragma once

namespace terrace::introspect {

struct Layout;

}  // namespace terrace::introspect
