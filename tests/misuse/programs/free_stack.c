/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "misuse.h"

int main(void) {
  _Alignas(16) char block[64];
  free(announce(block));
  return unnoticed();
}
