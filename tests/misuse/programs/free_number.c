/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* argv: any number as a pointer. */
#include "misuse.h"

int main(int argc, char** argv) {
  void* p = allocated(100);
  free(announce((void*)size_argument(argc, argv, 16)));
  free(p);
  return unnoticed();
}
