# SPDX-License-Identifier: MIT OR Apache-2.0
# Parts of the project as archives of their own, which have nothing of malloc: the LAB engine for runtimes to embed, and critical
# sections. Each is a layer and those below it.
# terrace_archive(NAME LAYER...): libterrace_NAME.a, terrace::NAME
function(terrace_archive name)
  set(objects "")
  foreach(layer ${ARGN})
    if(TARGET terrace_${layer})
      list(APPEND objects $<TARGET_OBJECTS:terrace_${layer}>)
    endif()
  endforeach()
  add_library(terrace_${name}_archive STATIC ${objects})
  set_target_properties(terrace_${name}_archive PROPERTIES OUTPUT_NAME terrace_${name} EXPORT_NAME ${name})
  target_include_directories(terrace_${name}_archive INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  add_library(terrace::${name} ALIAS terrace_${name}_archive)
endfunction()

terrace_archive(cs base arch os percpu cs)
terrace_archive(lab base arch os topology percpu level lab)
