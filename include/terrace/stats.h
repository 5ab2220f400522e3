/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Statistics: what each level did and holds.
 *
 * The numbers of a level balance: blocks handed down - blocks taken back = blocks that the levels below it and the program
 * have. They are exact while nobody allocates; otherwise each was true at some recent moment. The columns are described in the
 * JSON itself and in docs/guide/statistics.md.
 */
#ifndef TERRACE_STATS_H
#define TERRACE_STATS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * terrace_stats_json - all statistics as one JSON object (schema 1) and a newline.
 * @buf: receives the text and a terminating zero; may be NULL if @size is 0.
 * @size: bytes at @buf. 128 KiB are enough for any state of this version.
 *
 * Returns the length of the whole text without the zero. If that is >= @size, the text was cut: call again with more.
 * Returns 0 when the snapshot finds no memory (errno ENOMEM).
 * Threads: safe. Signals: not safe. fork: usable in the child. Cost: some 100 us; takes the locks of the depots one by one.
 * Since 0.1.
 */
size_t terrace_stats_json(char* buf, size_t size);

/** terrace_stats_text - the same as a table for people, one line per level. Results and safety as terrace_stats_json(). */
size_t terrace_stats_text(char* buf, size_t size);

/**
 * terrace_rung - the rung in use, that is, how a thread finds its slot: "mm_cid", "cpu_id", "getcpu" or "thread".
 * terrace_rung_reason - one sentence that says why.
 *
 * Static storage, never NULL. The first call decides if no allocation has. Threads, fork: safe. Since 0.1.
 */
const char* terrace_rung(void);
const char* terrace_rung_reason(void);

#ifdef __cplusplus
}
#endif
#endif
