/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Nowhere to write, SIGABRT blocked and ignored: it must still die. */
#include "misuse.h"

#include <signal.h>

int main(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  signal(SIGABRT, SIG_IGN);
  close(STDERR_FILENO);
  void* p = allocated(24);
  free(p);
  free(opaque(p));
  return unnoticed();
}
