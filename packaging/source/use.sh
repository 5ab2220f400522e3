#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# use.sh FILE: what users do with the source tar, in an empty directory: one program by CMake's FetchContent, by Meson and by Conan,
# and with what vcpkg's port installs.
set -eu
tar -xf "$1"
sources=$(echo "$PWD"/terrace-*/)
consumer=$sources/packaging/source/consumer

by_cmake() {
  cmake -G Ninja -S "$consumer" -B "$1" -DCMAKE_BUILD_TYPE=Debug "$2"
  cmake --build "$1"
  "$1"/consumer
}

fetchcontent() { by_cmake fetched "-DTERRACE_URL=file://$1"; }

meson() {
  mkdir -p project/subprojects
  cp "$consumer/meson.build" "$sources/tests/install/programs/program.c" project
  ln -s "$sources" project/subprojects/terrace
  command meson setup meson project
  command meson compile -C meson
  meson/consumer
}

conan() {
  export CONAN_HOME="$PWD/conan"
  command conan profile detect
  command conan create "$sources/packaging/conan"
}

vcpkg() {
  cmake -DPACKAGES="$PWD/vcpkg" -P "$sources/packaging/source/vcpkg.cmake"
  by_cmake by_vcpkg "-DCMAKE_PREFIX_PATH=$PWD/vcpkg"
}

# The last command of each way needs all before it: in a condition the shell goes on after a failure.
for way in fetchcontent meson conan vcpkg; do
  $way "$1" >said 2>&1 || { echo "$way:"; tail -n 40 said; exit 1; }
done
echo "source: used"
