// SPDX-License-Identifier: MIT OR Apache-2.0
#include "os/secret.h"

#include "base/bits.h"
#include "base/random.h"
#include "os/auxv.h"

#include <cstring>
#include <elf.h>

namespace terrace::os {

std::uint64_t process_secret(std::uint64_t purpose) noexcept {
  std::uint64_t bytes[2] = {};
  if (const unsigned long at = auxiliary_value(AT_RANDOM); at != 0) std::memcpy(bytes, pointer_to(at), sizeof bytes);
  // libc's own secrets are made of the same bytes: two words into one, so that one who learns ours does not have them.
  return mixed(bytes[0] + mixed(bytes[1] + mixed(purpose)));
}

}  // namespace terrace::os
