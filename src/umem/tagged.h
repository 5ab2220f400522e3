// SPDX-License-Identifier: MIT OR Apache-2.0
// malloc and its family on the default caches: a tag before each block says how long it is, and with which alignment it was
// made. A program that writes before its block, or frees it twice, is found by it.
#pragma once

#include "heap/heap.h"

namespace terrace::umem {

extern const heap::Heap::Redirect tagged_malloc;

}  // namespace terrace::umem
