// SPDX-License-Identifier: MIT OR Apache-2.0
// A debugger reads the heap of a process, or of a core file, by descriptors (base/descriptor.h): where each field lies that it
// needs. Classes whose fields are described befriend the Layout that does it, which takes their offsets and nothing else.
#pragma once

namespace terrace {
namespace introspect {
struct Layout;  // introspect/descriptors.cpp
}
namespace umem {
struct Layout;  // umem/descriptors.cpp
}
}  // namespace terrace
