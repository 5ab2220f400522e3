// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads that wait, one in each of some system calls, for the debugger's tests. Prints "ready" when all have begun to and
// waits for its standard input to end; then it prints the names of the calls that failed with EINTR, a line each.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { seconds = 600 };
static const struct timespec time_out = {seconds, 0};

static struct timespec at_the_end(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += seconds;
  return t;
}
static int a_socket(int option) {
  int ends[2];
  const struct timeval limit = {seconds, 0};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) exit(3);
  if (option != 0) setsockopt(ends[0], SOL_SOCKET, option, &limit, sizeof limit);
  return ends[0];
}
static long accept_with(int option) {
  const struct timeval limit = {seconds, 0};
  const int s = socket(AF_INET, SOCK_STREAM, 0);
  if (s < 0 || listen(s, 1) != 0) return 0;
  if (option != 0) setsockopt(s, SOL_SOCKET, option, &limit, sizeof limit);
  return accept(s, NULL, NULL);
}
static long wait_for_events(int milliseconds) {
  struct epoll_event event;
  return epoll_wait(epoll_create1(0), &event, 1, milliseconds);
}
static long wait_for_signal(const struct timespec* limit) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return limit != NULL ? sigtimedwait(&set, NULL, limit) : sigwaitinfo(&set, NULL);
}
static long wait_for_semaphore(const struct timespec* limit) {
  static sem_t semaphore;
  return limit != NULL ? sem_timedwait(&semaphore, limit) : sem_wait(&semaphore);
}
static long read_from(int file) {
  char bytes[512];
  return read(file, bytes, sizeof bytes);
}
static long send_much(void) {
  static char bytes[1 << 20];
  const int s = a_socket(SO_SNDTIMEO);
  while (send(s, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
  return send(s, bytes, 1, 0);
}
static long wait_for_word(void) {
  static int word;
  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time_out);
}
static long wait_for_pipe(void) {
  int ends[2];
  return pipe(ends) == 0 ? read_from(ends[0]) : 0;
}

// In the order of `names`. Unlimited waits end with the process.
static const char* const names[] = {"epoll_wait",
                                    "epoll_wait unlimited",
                                    "poll",
                                    "select",
                                    "nanosleep",
                                    "sem_wait",
                                    "sem_timedwait",
                                    "futex",
                                    "read",
                                    "read inotify",
                                    "recv",
                                    "recv SO_RCVTIMEO",
                                    "read SO_RCVTIMEO",
                                    "send SO_SNDTIMEO",
                                    "accept",
                                    "accept SO_RCVTIMEO",
                                    "sigwaitinfo",
                                    "sigtimedwait",
                                    "pause"};
static long call(int which) {
  struct timeval limit = {seconds, 0};
  const struct timespec end = at_the_end();
  switch (which) {
    case 0: return wait_for_events(seconds * 1000);
    case 1: return wait_for_events(-1);
    case 2: return poll(NULL, 0, seconds * 1000);
    case 3: return select(0, NULL, NULL, NULL, &limit);
    case 4: return nanosleep(&time_out, NULL);
    case 5: return wait_for_semaphore(NULL);
    case 6: return wait_for_semaphore(&end);
    case 7: return wait_for_word();
    case 8: return wait_for_pipe();
    case 9: return read_from(inotify_init());
    case 10: return recv(a_socket(0), &limit, 1, 0);
    case 11: return recv(a_socket(SO_RCVTIMEO), &limit, 1, 0);
    case 12: return read_from(a_socket(SO_RCVTIMEO));
    case 13: return send_much();
    case 14: return accept_with(0);
    case 15: return accept_with(SO_RCVTIMEO);
    case 16: return wait_for_signal(NULL);
    case 17: return wait_for_signal(&time_out);
    default: return pause();
  }
}

enum { calls = sizeof names / sizeof *names };
static int begun, interrupted[calls];

static void* waiting(void* which) {
  const int i = (int)(size_t)which;
  __atomic_fetch_add(&begun, 1, __ATOMIC_RELEASE);
  if (call(i) < 0 && errno == EINTR) __atomic_store_n(&interrupted[i], 1, __ATOMIC_RELEASE);
  for (;;) poll(NULL, 0, -1);
  return NULL;
}

int main(void) {
  char byte;
  for (size_t i = 0; i < calls; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, waiting, (void*)i) != 0) return 3;
  }
  while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) != calls) usleep(1000);
  if (write(1, "ready\n", 6) != 6) return 4;
  while (read(0, &byte, 1) > 0) {
  }
  usleep(100000);  // those that were interrupted say so
  for (int i = 0; i < calls; ++i) {
    if (__atomic_load_n(&interrupted[i], __ATOMIC_ACQUIRE)) puts(names[i]);
  }
  fflush(stdout);
  _exit(0);
}
