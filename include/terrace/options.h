/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Options of a program that is linked to Terrace.
 */
#ifndef TERRACE_OPTIONS_H
#define TERRACE_OPTIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Defined by a program, or not: options as NAME=VALUE with spaces between them, as the environment would have them, which wins.
 *
 *     const char* terrace_options = "TERRACE_BUDGET=64M TERRACE_DECAY_MS=200";
 *
 * Read once, before main. What is no option is refused by a line on standard error. Values have no spaces. It counts in
 * set-user-ID programs, too. Where Terrace is preloaded, the program must export it (-rdynamic). Since 0.1.
 */
extern const char* terrace_options;

#ifdef __cplusplus
}
#endif
#endif
