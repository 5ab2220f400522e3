/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether malloc is of the library that the argument names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char** words) {
  Dl_info found;
  if (count != 2 || dladdr(dlsym(RTLD_DEFAULT, "malloc"), &found) == 0) return 2;
  free(malloc(10));
  return strcmp(found.dli_fname, words[1]) != 0;
}
