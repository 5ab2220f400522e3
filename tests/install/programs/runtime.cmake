# SPDX-License-Identifier: MIT OR Apache-2.0
# Without C++.
cmake_minimum_required(VERSION 3.25)
project(runtime LANGUAGES C)
find_package(terrace 0.1 REQUIRED)
foreach(part lab cs)
  add_executable(c_${part} ${part}.c)
  target_link_libraries(c_${part} PRIVATE terrace::${part})
endforeach()
add_executable(c_static program.c)
target_link_libraries(c_static PRIVATE terrace::static)
