# SPDX-License-Identifier: MIT OR Apache-2.0
# libumem.so and libumem.a: the interface alone, beside whatever malloc. libumem_malloc.so: malloc and its family, too.
if(TERRACE_SANITIZE)
  return()
endif()

set(TERRACE_UMEM_VERSION 1.0.0)

# Objects, so that the libraries themselves are linked as C: they depend on libc alone.
add_library(terrace_umem_names OBJECT ${shim}/umem/names.cpp)
add_library(terrace_umem_process OBJECT ${shim}/process.cpp)
foreach(part names process)
  set_target_properties(terrace_umem_${part} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(terrace_umem_${part} PRIVATE terrace_flags)
endforeach()

set(below_shim "")
foreach(layer ${TERRACE_LAYER_OBJECTS})
  if(NOT layer MATCHES "terrace_(shim|cs|vmem|umem)$")
    list(APPEND below_shim $<TARGET_OBJECTS:${layer}>)
  endif()
endforeach()

# terrace_umem_library(TARGET NAME MAP OBJECTS...)
function(terrace_umem_library target name map)
  add_library(${target} SHARED ${ARGN} $<TARGET_OBJECTS:terrace_vmem> $<TARGET_OBJECTS:terrace_umem> $<TARGET_OBJECTS:terrace_umem_names>)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${name} LINKER_LANGUAGE C VERSION ${TERRACE_UMEM_VERSION} SOVERSION 1 LINK_DEPENDS "${map};${shim}/replaceable.list")
  target_link_options(${target} PRIVATE
    -Wl,--version-script=${map} -Wl,-z,nodelete -Wl,-z,now -Wl,-z,relro -Wl,--no-undefined ${TERRACE_REPLACEABLE_LINK_OPTIONS} -Wl,--gc-sections)
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  if(NOT PROJECT_IS_TOP_LEVEL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  elseif(TERRACE_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endfunction()

terrace_umem_library(terrace_umem_api umem ${shim}/umem/umem.map ${below_shim}
                     $<TARGET_OBJECTS:terrace_umem_process>)
terrace_umem_library(terrace_umem_malloc umem_malloc ${shim}/umem/umem_malloc.map ${everything})
target_link_options(terrace_umem_malloc PRIVATE -Wl,-z,initfirst)  # as libterrace.so

add_library(terrace_umem_static STATIC ${below_shim} $<TARGET_OBJECTS:terrace_vmem> $<TARGET_OBJECTS:terrace_umem>
            $<TARGET_OBJECTS:terrace_umem_names> $<TARGET_OBJECTS:terrace_umem_process>)
set_target_properties(terrace_umem_static PROPERTIES OUTPUT_NAME umem)
if(NOT PROJECT_IS_TOP_LEVEL)
  set_target_properties(terrace_umem_static PROPERTIES EXCLUDE_FROM_ALL ON)
elseif(TERRACE_INSTALL)
  install(TARGETS terrace_umem_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/include/umem.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/include/sys/vmem.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sys)
endif()
