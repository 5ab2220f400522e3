# SPDX-License-Identifier: MIT OR Apache-2.0
# A driver of a benchmark, NAME.py, as a test that it works: as short as possible, no time is looked at.
find_program(bench_python python3 HINTS ${PROJECT_SOURCE_DIR}/build/.venv/bin NO_CACHE REQUIRED)  # of the checkout, if it is made

find_package(Threads REQUIRED)

# bench_NAME of NAME.cpp. Without -fno-builtin, calls of malloc and free that nobody looks at are removed.
function(terrace_bench_program name)
  add_executable(bench_${name} ${name}.cpp)
  target_compile_features(bench_${name} PRIVATE cxx_std_20)
  target_compile_options(bench_${name} PRIVATE -O2 -Wall -Wextra -fno-builtin)
  target_link_libraries(bench_${name} PRIVATE Threads::Threads ${ARGN})
endfunction()

function(terrace_bench_driver name)
  add_test(NAME bench.${name} COMMAND ${bench_python} ${PROJECT_SOURCE_DIR}/bench/common/drive.py
           ${CMAKE_CURRENT_SOURCE_DIR}/${name}.py --smoke --build ${PROJECT_BINARY_DIR} --out ${CMAKE_CURRENT_BINARY_DIR}/results)
  set_tests_properties(bench.${name} PROPERTIES LABELS bench TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()
