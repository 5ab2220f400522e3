// SPDX-License-Identifier: MIT OR Apache-2.0
#include "arch/chain.h"

namespace terrace::chain {

std::uint64_t link_secret = 0;

}  // namespace terrace::chain
