/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded into any program: ends it with a status of its own as it leaves main. */
#include <unistd.h>

__attribute__((destructor)) static void at_end(void) { _exit(3); }
