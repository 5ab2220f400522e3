#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh: what a user does with the installed packages, in a root that has Python, a C compiler, CMake and pkg-config.
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
terrace profile --peak -- python3 -c 'bytes(30 << 20)' >profile
says '^process .* MiB in .* in use at the peak' profile
cat >objects.c <<'END'
#include <terrace/malloc.h>
#include <umem.h>
int main(void) {
  terrace_free(terrace_malloc(10));
  umem_free(umem_alloc(10, UMEM_NOFAIL), 10);
  return 0;
}
END
# shellcheck disable=SC2046
cc objects.c -o objects $(PKG_CONFIG_PATH=/usr/lib64/pkgconfig pkg-config --cflags --libs terrace umem) -Wl,-rpath,/usr/lib64
TERRACE_STATS=text ./objects 2>table
says '^ *core' table
cmake -S . -B built -Dterrace_DIR=/usr/lib64/cmake/terrace >configured
cmake --build built >compiled
LD_LIBRARY_PATH=/usr/lib64 built/linked >version
says "$(PKG_CONFIG_PATH=/usr/lib64/pkgconfig pkg-config --modversion terrace)" version
echo "rpm: used"
