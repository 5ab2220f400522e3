# SPDX-License-Identifier: MIT OR Apache-2.0
# Which build runs which tests, and how test programs are compiled. CONTRIBUTING.md says why which test is where.
option(TERRACE_EVERY_TEST "Also tests that say in this build what they say in another one" OFF)

if(TERRACE_SANITIZE MATCHES "thread")
  set(TERRACE_BUILD tsan)
elseif(TERRACE_SANITIZE)
  set(TERRACE_BUILD asan)
elseif(TERRACE_INJECT)
  set(TERRACE_BUILD inject)
elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(TERRACE_BUILD dev)
else()
  set(TERRACE_BUILD release)
endif()

# Sets `variable` to whether this is one of the builds named.
function(terrace_built_as variable)
  set(${variable} OFF PARENT_SCOPE)
  if(TERRACE_EVERY_TEST OR TERRACE_BUILD IN_LIST ARGN)
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()

# Leaves the calling file in builds that are not named.
macro(terrace_tests_in)
  terrace_built_as(terrace_tests_are_here ${ARGN})
  if(NOT terrace_tests_are_here)
    return()
  endif()
endmacro()

# Sets `variable` to whether a test has threads; where not, ThreadSanitizer has nothing to say.
function(terrace_starts_threads variable file)
  file(STRINGS ${file} lines REGEX "std::j?thread|pthread_create" LIMIT_COUNT 1)
  set(${variable} OFF PARENT_SCOPE)
  if(lines)
    set(${variable} ON PARENT_SCOPE)
  endif()
endfunction()

# A program of GoogleTest's. Its headers take longer to read than most tests: they are compiled once for each directory, whose
# programs must have the same flags. It is the library whose optimisation is tested, and lines are enough of debug information.
# Checks of pointers are half of UBSan's code, and here mostly of GoogleTest's own: the library's objects have them.
function(terrace_gtest_program target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -g1 $<$<CONFIG:RelWithDebInfo>:-O1>)
  if(TERRACE_BUILD STREQUAL "asan")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,object-size,vptr)
  endif()
  get_property(first DIRECTORY PROPERTY terrace_first_gtest_program)
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE <gtest/gtest.h>)
    set_property(DIRECTORY PROPERTY terrace_first_gtest_program ${target})
  endif()
endfunction()

# A sanitizer reserves terabytes. While env.no_overcommit of another build runs, that fails: so no such program is run by a build.
if(TERRACE_SANITIZE)
  set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)
endif()

# A program for each *_test.cpp of the calling directory, PREFIX_NAME, linked to `library`; its tests are PREFIX.SUITE.NAME.
function(terrace_layer_tests prefix library)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cpp)
  terrace_built_as(one_thread_too release dev asan)
  foreach(file ${tests})
    terrace_starts_threads(threads ${file})
    if(NOT threads AND NOT one_thread_too)
      continue()
    endif()
    cmake_path(GET file STEM name)
    set(target ${prefix}_${name})
    add_executable(${target} ${file})
    terrace_gtest_program(${target})
    if(TERRACE_SANITIZE)
      target_compile_definitions(${target} PRIVATE TERRACE_SANITIZED=1)
    endif()
    if(TERRACE_INJECT)
      target_compile_definitions(${target} PRIVATE TERRACE_INJECT=1)
    endif()
    target_link_libraries(${target} PRIVATE ${library} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(${target} TEST_PREFIX ${prefix}. PROPERTIES LABELS ${prefix} TIMEOUT 120 DISCOVERY_TIMEOUT 300)
  endforeach()
endfunction()

# A test for each test_*.py of the calling directory, PREFIX.NAME, by pytest. The environment of the checkout may be made after
# the first configuration, so the Python that was found is not cached.
function(terrace_python_tests prefix)
  find_program(python python3 HINTS ${PROJECT_SOURCE_DIR}/build/.venv/bin NO_CACHE REQUIRED)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/test_*.py)
  foreach(file ${tests})
    cmake_path(GET file STEM name)
    string(REPLACE "test_" "${prefix}." test ${name})
    set(build dev)
    if(name MATCHES "end_to_end$")  # with the real library
      set(build release)
    endif()
    if(TERRACE_BUILD STREQUAL build)
      add_test(NAME ${test} COMMAND ${python} ${PROJECT_SOURCE_DIR}/tests/tool/run_pytest.py ${file})
      set_tests_properties(${test} PROPERTIES LABELS tool SKIP_RETURN_CODE 77 TIMEOUT 300)
    endif()
  endforeach()
endfunction()
