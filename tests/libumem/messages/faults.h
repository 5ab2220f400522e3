// SPDX-License-Identifier: MIT OR Apache-2.0
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf faults_back;
static void faults_handler(int number) { siglongjmp(faults_back, number); }

/* Whether reading there is SIGSEGV. */
static int faults_at(const volatile char* p) {
  struct sigaction action = {.sa_handler = faults_handler}, before;
  sigaction(SIGSEGV, &action, &before);
  int faulted = sigsetjmp(faults_back, 1);
  if (!faulted) (void)*p;
  sigaction(SIGSEGV, &before, 0);
  return faulted != 0;
}
