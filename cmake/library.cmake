# SPDX-License-Identifier: MIT OR Apache-2.0
# The shared object to preload or link, the static archive, and the archive without the libc names that tests use.

set(shim ${PROJECT_SOURCE_DIR}/src/shim)
# A new handler may throw through two of these files, and one throws itself; the third says why. A property of the calling directory.
function(terrace_shim_options)
  set_source_files_properties(${shim}/operators.cpp PROPERTIES COMPILE_OPTIONS -fexceptions)
  set_source_files_properties(${shim}/no_memory.cpp PROPERTIES COMPILE_OPTIONS "-fexceptions;-frtti")
  set_source_files_properties(${shim}/dlopen.cpp PROPERTIES COMPILE_OPTIONS -O2)
endfunction()
terrace_shim_options()

set(everything "")
foreach(layer ${TERRACE_LAYER_OBJECTS})
  list(APPEND everything $<TARGET_OBJECTS:${layer}>)
endforeach()

# The archive's users are linked to a C++ runtime, statically perhaps, if they use an operator: no_memory.h.
add_library(terrace_linked_runtime OBJECT ${shim}/no_memory.cpp)
set_target_properties(terrace_linked_runtime PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(terrace_linked_runtime PRIVATE terrace_flags)
target_compile_definitions(terrace_linked_runtime PRIVATE TERRACE_LINKED_TO_RUNTIME=1)

add_library(terrace_static STATIC "$<FILTER:${everything},EXCLUDE,/shim/(no_memory|dlopen)[.]cpp>" $<TARGET_OBJECTS:terrace_linked_runtime>)
set_target_properties(terrace_static PROPERTIES OUTPUT_NAME terrace EXPORT_NAME static)
add_library(terrace::static ALIAS terrace_static)
# Its users link by C: thread-local data and dlopen come from libc.
target_link_libraries(terrace_static INTERFACE ${CMAKE_DL_LIBS})
target_include_directories(terrace_static INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Names are bound to the definitions in the object, but for those that the program may replace.
set(TERRACE_REPLACEABLE_LINK_OPTIONS -Wl,--dynamic-list=${shim}/replaceable.list)
# initfirst: its fork handlers have to be registered before those of any other object (src/heap/across_fork.cpp).
set(TERRACE_SHARED_LINK_OPTIONS
    -Wl,--version-script=${shim}/terrace.map -Wl,-z,initfirst -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro
    -Wl,--no-undefined ${TERRACE_REPLACEABLE_LINK_OPTIONS} -Wl,--gc-sections)
if(NOT TERRACE_SANITIZE)
  # Linked by the C driver: the object must not depend on libstdc++.
  add_library(terrace_shared SHARED ${everything})
  set_target_properties(terrace_shared PROPERTIES
    OUTPUT_NAME terrace EXPORT_NAME terrace LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS "${shim}/terrace.map;${shim}/replaceable.list")
  add_library(terrace::terrace ALIAS terrace_shared)
  target_link_options(terrace_shared PRIVATE ${TERRACE_SHARED_LINK_OPTIONS})
  target_include_directories(terrace_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endif()

# terrace_preload_name(TARGET): its name for LD_PRELOAD, the same in every version. It is a link, so a program that is linked to the
# library, too, has it once.
function(terrace_preload_name target)
  get_target_property(name ${target} OUTPUT_NAME)
  install(CODE "file(CREATE_LINK lib${name}.so.${PROJECT_VERSION_MAJOR}
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/lib${name}-preload.so\" SYMBOLIC)")
endfunction()

# The shared object once more, of the same sources with flags of its own: for a test or a benchmark that wants it otherwise.
# terrace_variant(TARGET [SAME LAYER ...]): layers that its flags do not change are not compiled again.
function(terrace_variant target)
  cmake_parse_arguments(PARSE_ARGV 1 variant "" "" SAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp
       ${PROJECT_SOURCE_DIR}/src/*/${CMAKE_SYSTEM_PROCESSOR}/*.S)
  list(FILTER sources EXCLUDE REGEX "/src/(lab|vmem|umem|shim/umem)/")
  foreach(layer ${variant_SAME})
    list(FILTER sources EXCLUDE REGEX "/src/${layer}/")
    if(TARGET terrace_${layer})
      list(APPEND sources $<TARGET_OBJECTS:terrace_${layer}>)
    endif()
  endforeach()
  terrace_shim_options()
  add_library(${target} SHARED ${sources})
  target_link_libraries(${target} PRIVATE terrace_flags)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  target_link_options(${target} PRIVATE ${TERRACE_SHARED_LINK_OPTIONS})
endfunction()

if(TERRACE_HARDENED AND NOT TERRACE_SANITIZE)
  terrace_variant(terrace_hardened)
  target_compile_definitions(terrace_hardened PRIVATE TERRACE_HARDENED=1)
  set_target_properties(terrace_hardened PROPERTIES OUTPUT_NAME terrace-hardened VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR})
  if(TERRACE_INSTALL)
    install(TARGETS terrace_hardened LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    terrace_preload_name(terrace_hardened)
  endif()
endif()
