/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TERRACE_VERSION_H
#define TERRACE_VERSION_H

#define TERRACE_VERSION_MAJOR 0
#define TERRACE_VERSION_MINOR 1
#define TERRACE_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/**
 * terrace_version - the version of the library that is loaded, e.g. "0.1.0".
 *
 * Static storage. Threads, signals, fork: safe. Cost: none. Since 0.1.
 */
const char* terrace_version(void);

#ifdef __cplusplus
}
#endif
#endif
