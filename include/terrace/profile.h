/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The heap profiler, from inside of the program. From outside: `terrace profile`, docs/guide/profile.md.
 *
 *     terrace_profile_start(512 << 10, 0);
 *     ...
 *     int fd = open("heap.profile", O_WRONLY | O_CREAT | O_TRUNC, 0644);
 *     if (fd >= 0 && terrace_profile_write(fd) == 0) ...    then, in a shell: terrace profile heap.profile
 */
#ifndef TERRACE_PROFILE_H
#define TERRACE_PROFILE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Stacks by frame pointers alone: 512 bytes a sample, not 4,608 or 8,704. */
#define TERRACE_PROFILE_FRAMES 1

/**
 * terrace_profile_start - samples allocations from now on, or with another period.
 * @period: mean bytes between two samples, 1 to 2^56 - 1; 512 KiB is usual.
 * @flags: 0, or TERRACE_PROFILE_FRAMES.
 *
 * Returns 0. EINVAL: @period or @flags are none of these. ENOMEM: there is no memory for a heap. Nothing has changed then.
 * Samples from before stay, with the period that they were drawn by. A thread samples from when it next refills or empties a
 * buffer of its core.
 * Threads: safe. Signals: async-signal-safe once the program has allocated anything; errno is left alone. fork: the child
 * samples on. Cost: none by itself; see docs/guide/options.md, TERRACE_PROFILE. Since 0.1.
 */
int terrace_profile_start(size_t period, int flags);

/**
 * terrace_profile_stop - samples no more. Samples that there are stay, until their blocks are freed.
 *
 * Threads, signals, fork: safe. Cost: none. Since 0.1.
 */
void terrace_profile_stop(void);

/**
 * terrace_profile_period - the period that is in force, by whomever it was set; 0: nothing is sampled.
 *
 * Threads, signals, fork: safe. Cost: none. Since 0.1.
 */
size_t terrace_profile_period(void);

/**
 * terrace_profile_write - writes all samples, their stacks and the list of mapped files, for `terrace profile FILE`, which
 * converts them to what pprof, a browser and others read. Not a core file of the process: the program's data are not in it.
 * @fd: a file, a pipe or a socket that is open for writing; left open. 512 bytes or 8,704 for each sample, and some 100 KiB.
 *
 * Returns 0, or the errno of write(2); ENOMEM: 2 MiB could not be mapped to work in; ENOENT: /proc is not there. What was
 * written until then is no whole file.
 * Samples that are taken or dropped meanwhile are in it or not; one that is half written is left out.
 * Threads: safe, others go on. Signals: async-signal-safe, also where the signal has interrupted malloc; errno is left alone.
 * fork: usable in the child at once. Locks: none. Cost: a system call for each sample that has a copy of its stack. Since 0.1.
 */
int terrace_profile_write(int fd);

#ifdef __cplusplus
}
#endif
#endif
