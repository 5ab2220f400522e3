# SPDX-License-Identifier: MIT OR Apache-2.0
# The shared object to preload or link, the static archive, and the archive without the libc names that tests use.

# See the file: a new handler may throw through it.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/shim/operators.cpp PROPERTIES COMPILE_OPTIONS -fexceptions)

set(everything "")
foreach(layer ${TERRACE_LAYER_OBJECTS})
  list(APPEND everything $<TARGET_OBJECTS:${layer}>)
endforeach()

add_library(terrace_static STATIC ${everything})
set_target_properties(terrace_static PROPERTIES OUTPUT_NAME terrace)
target_include_directories(terrace_static INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

if(NOT TERRACE_SANITIZE)
  # Linked by the C driver: the object must not depend on libstdc++.
  add_library(terrace_shared SHARED ${everything})
  set_target_properties(terrace_shared PROPERTIES
    OUTPUT_NAME terrace LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/shim/terrace.map)
  target_link_options(terrace_shared PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/shim/terrace.map -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro
    -Wl,--no-undefined -Wl,-Bsymbolic -Wl,--gc-sections)
  target_include_directories(terrace_shared INTERFACE
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endif()
