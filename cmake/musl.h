/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What headers of a libstdc++ that was configured for glibc ask of libc, and musl has not: see musl.cmake. Nothing calls it. */
#if !defined(__ASSEMBLER__)
#define __GLIBC_PREREQ(major, minor) 0
#define __locale_t locale_t
#include <pthread.h>
extern "C" int pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
#endif
