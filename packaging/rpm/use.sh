#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh: what a user does with the installed packages, in a root that has Python and a C compiler.
set -eu
says() { grep -q -- "$1" "$2" || { echo "no '$1' in:"; cat "$2"; exit 1; }; }
terrace-run cat /proc/self/maps >maps
says '/usr/lib64/libterrace.so.0' maps
terrace-run --hardened cat /proc/self/maps >maps
says '/usr/lib64/libterrace-hardened.so.0' maps
terrace run -- ls / >listing 2>table
says usr listing
says core table
terrace run --quiet --library umem -- cat /proc/self/maps >maps
says '/usr/lib64/libumem_malloc.so.1' maps
cat >program.c <<'END'
#include <terrace/malloc.h>
#include <umem.h>
int main(void) {
  terrace_free(terrace_malloc(10));
  umem_free(umem_alloc(10, UMEM_NOFAIL), 10);
  return 0;
}
END
# shellcheck disable=SC2046
cc program.c -o program $(PKG_CONFIG_PATH=/usr/lib64/pkgconfig pkg-config --cflags --libs terrace umem) -Wl,-rpath,/usr/lib64
TERRACE_STATS=text ./program 2>table
says '^ *core' table
echo "rpm: used"
