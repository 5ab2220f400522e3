#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use-musl.sh FILE PROGRAM CMAKE-FILE: what a user of musl does with its tar, here by musl-gcc, in the working directory.
set -eu
says() { grep -q -- "$1" "$2" || { echo "no '$1' in:"; cat "$2"; exit 1; }; }

tar -xf "$1"
cp "$2" "$3" .
prefix=$(echo "$PWD"/terrace-*-linux-musl-*)
run=$prefix/bin/terrace-run
config() { PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config "$@" terrace; }

cat >maps.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  FILE* f = fopen("/proc/self/maps", "r");
  for (int c; (c = getc(f)) != EOF;) putchar(c);
  return !malloc(1);
}
EOF
musl-gcc maps.c -o maps
"$run" ./maps >mapped
says "$prefix/lib/libterrace.so.0" mapped
"$run" --hardened ./maps >mapped
says "$prefix/lib/libterrace-hardened.so.0" mapped
status=0
"$run" true 2>refused || status=$?
[ "$status" = 125 ]
says 'is of glibc' refused

# shellcheck disable=SC2046
musl-gcc program.c -o program $(config --cflags --libs) -Wl,-rpath,"$prefix/lib"
./program >version
says "$(config --modversion)" version
# shellcheck disable=SC2046
musl-gcc -static program.c -o static $(config --static --cflags --libs)
./static | cmp - version
CC=musl-gcc cmake -S . -B built -DCMAKE_PREFIX_PATH="$prefix" >configured
cmake --build built >compiled
built/linked | cmp - version
echo "tar: used on musl"
