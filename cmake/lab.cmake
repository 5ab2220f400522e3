# SPDX-License-Identifier: MIT OR Apache-2.0
# The LAB engine as one archive for runtimes to embed: the layer lab and those below it, nothing of malloc.
set(objects "")
foreach(layer base arch os topology percpu lab)
  if(TARGET terrace_${layer})
    list(APPEND objects $<TARGET_OBJECTS:terrace_${layer}>)
  endif()
endforeach()
add_library(terrace_lab_archive STATIC ${objects})
set_target_properties(terrace_lab_archive PROPERTIES OUTPUT_NAME terrace_lab EXPORT_NAME lab)
add_library(terrace::lab ALIAS terrace_lab_archive)
target_include_directories(terrace_lab_archive INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
