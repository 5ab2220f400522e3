# SPDX-License-Identifier: MIT OR Apache-2.0
# The programs that workloads.py runs, and a test of each: little work, every block checked, no time is looked at.
include(${CMAKE_SOURCE_DIR}/cmake/bench.cmake)
set(workloads aligned alloc_test cache_scratch cache_thrash calloc_realloc handover large larson mstress rptest sh6 sh8 simple sizes
              strings xmalloc)

function(terrace_workload_test name timeout)
  add_test(NAME bench.workload_${name} COMMAND ${bench_python} ${CMAKE_CURRENT_SOURCE_DIR}/workloads_test.py
           ${CMAKE_BINARY_DIR} ${ARGN})
  set_tests_properties(bench.workload_${name} PROPERTIES LABELS bench TIMEOUT ${timeout} SKIP_RETURN_CODE 77)
endfunction()

foreach(workload ${workloads})
  terrace_bench_program(${workload})
  target_include_directories(bench_${workload} PRIVATE ${CMAKE_SOURCE_DIR}/bench)
  terrace_workload_test(${workload} 120 works ${workload})
endforeach()

terrace_workload_test(settles 60 settles)
terrace_workload_test(list 120 list)
if(TARGET stress_broken_allocator)
  terrace_workload_test(finds_broken_allocators 120 finds_broken_allocators $<TARGET_FILE:stress_broken_allocator>)
endif()
