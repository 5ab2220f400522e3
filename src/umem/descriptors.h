// SPDX-License-Identifier: MIT OR Apache-2.0
// What a debugger needs to know of object caches and arenas, beside what introspect/descriptors.h tells of their blocks: one
// object, terrace_umem_descriptor, in the section .terrace_umem of libumem.so and libumem_malloc.so.
#pragma once

#include "base/descriptor.h"

namespace terrace::umem {

inline constexpr unsigned descriptor_version = 1;
inline constexpr unsigned described_addresses = 12;
inline constexpr unsigned described_fields = 128;

using Descriptor = describe::Descriptor<described_addresses, described_fields>;  // magic "terrace-umem"

}  // namespace terrace::umem

extern "C" __attribute__((visibility("default"), section(".terrace_umem")))
const terrace::umem::Descriptor terrace_umem_descriptor;
