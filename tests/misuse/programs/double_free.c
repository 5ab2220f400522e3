/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "misuse.h"

int main(int argc, char** argv) {
  void* p = announce(allocated(size_argument(argc, argv, 24)));
  free(p);
  free(opaque(p));
  return unnoticed();
}
