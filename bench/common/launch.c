/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* launch REPORT [KEY=VALUE...] PROGRAM ARGS: runs PROGRAM with these variables in its environment and writes one line to
   REPORT: STATUS SECONDS CPU_SECONDS PEAK_KIB FAULTS, the last three of PROGRAM and all children that it waited for. A process
   of its own, because a child's peak begins with that of the process it was forked from, and Python is large. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { cannot_run = 127, cannot_measure = 125 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

static int report(const char* path, int status, double took, const struct rusage* usage) {
  FILE* const file = fopen(path, "w");
  if (file == NULL) return cannot_measure;
  fprintf(file, "%d %f %f %ld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), took,
          seconds(usage->ru_utime) + seconds(usage->ru_stime), usage->ru_maxrss, usage->ru_minflt);
  return fclose(file) == 0 ? 0 : cannot_measure;
}

/* A program that outlives who measured it, because that one was stopped or no longer waits, disturbs all later measurements. */
static void end_with_parent(void) { prctl(PR_SET_PDEATHSIG, SIGKILL); }

int main(int argc, char** argv) {
  int first = 2;
  while (first < argc && strchr(argv[first], '=') != NULL) ++first;
  if (first >= argc) return cannot_measure;
  end_with_parent();
  const double begin = now();
  const pid_t child = fork();
  if (child == 0) {
    end_with_parent();
    for (int i = 2; i < first; ++i) putenv(argv[i]);
    execvp(argv[first], argv + first);
    _exit(cannot_run);
  }
  int status = 0;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return cannot_measure;
  return report(argv[1], status, now() - begin, &usage);
}
