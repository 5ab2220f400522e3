# SPDX-License-Identifier: MIT OR Apache-2.0
# Toolchain file: for musl, with glibc's g++ and Debian's musl-tools. The library needs no more of the C++ library than headers, and
# those of libstdc++ know no libc but the one that they were configured for: what they ask of glibc is answered by "no".
# (On a system whose libc is musl, as Alpine's, its own compiler does it, without this file.)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_ASM_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER g++)
set(kernel ${CMAKE_BINARY_DIR}/kernel-headers)  # musl has none of its own
file(MAKE_DIRECTORY ${kernel})
foreach(folder linux asm-generic x86_64-linux-gnu/asm)
  cmake_path(GET folder FILENAME name)
  file(CREATE_LINK /usr/include/${folder} ${kernel}/${name} SYMBOLIC)
endforeach()
execute_process(COMMAND g++ -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
set(CMAKE_CXX_FLAGS_INIT "-specs=/usr/lib/x86_64-linux-musl/musl-gcc.specs -isystem /usr/include/c++/${version} \
-isystem /usr/include/x86_64-linux-gnu/c++/${version} -include ${CMAKE_CURRENT_LIST_DIR}/musl.h \
-isystem ${kernel}")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # there is no C++ library to link
