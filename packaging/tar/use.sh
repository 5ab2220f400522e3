#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh FILE MACHINE: what a user does with the tar, in a root that has a C compiler, CMake and pkg-config and nothing of ours.
set -eu
says() { grep -q -- "$1" "$2" || { echo "no '$1' in:"; cat "$2"; exit 1; }; }

tar -C /opt -xf "$1"
prefix=$(echo /opt/terrace-*-linux-glibc-"$2")
run=$prefix/bin/terrace-run

TERRACE_STATS=text "$run" ls / >listing 2>table
says usr listing
says '^ *core' table
"$run" --hardened cat /proc/self/maps >maps
says "$prefix/lib/libterrace-hardened.so.0" maps
echo 'int main(void) { return 0; }' | cc -static -x c - -o static
status=0
"$run" ./static >refused 2>&1 || status=$?
[ "$status" = 125 ]
says 'linked statically' refused
LD_PRELOAD=$prefix/lib/libterrace-preload.so cat /proc/self/maps >maps
says "$prefix/lib/libterrace.so.0" maps

# shellcheck disable=SC2046
cc program.c -o program $(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs terrace) -Wl,-rpath,"$prefix/lib"
./program >version
says "$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --modversion terrace)" version
cmake -S . -B built -DCMAKE_PREFIX_PATH="$prefix" >configured
cmake --build built >compiled
built/linked | cmp - version
bash -c ". $prefix/share/bash-completion/completions/terrace && complete -p terrace" >completion
says terrace completion
says LIBTERRACE "$prefix/share/man/man3/terrace_malloc.3"
rm -r "$prefix"
echo "tar: used"
