/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "misuse.h"

static _Alignas(16) char block[64];

int main(void) {
  free(announce(block));
  return unnoticed();
}
