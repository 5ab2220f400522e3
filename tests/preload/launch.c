/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* launch REPORT LIBRARY PROGRAM ARGS: runs PROGRAM with LIBRARY preloaded ("-": none) and writes "STATUS SECONDS PEAK_KIB" to
   REPORT. A process of its own, because a child's peak begins with that of the process it was forked from, and Python is large. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  if (argc < 4) return 125;
  const double begin = now();
  const pid_t child = fork();
  if (child == 0) {
    if (strcmp(argv[2], "-") != 0) setenv("LD_PRELOAD", argv[2], 1);
    execvp(argv[3], argv + 3);
    _exit(127);
  }
  int status = 0;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return 125;
  FILE* const report = fopen(argv[1], "w");
  if (report == NULL) return 125;
  fprintf(report, "%d %f %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), now() - begin, usage.ru_maxrss);
  return fclose(report) == 0 ? 0 : 125;
}
