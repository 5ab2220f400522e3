/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An object that does nothing: what preloading any object takes. */
int terrace_bench_empty_object;
