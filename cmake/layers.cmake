# SPDX-License-Identifier: MIT OR Apache-2.0
# One directory under src/ = one layer = one object library `terrace_<layer>`. A layer may be divided into rooms, its folders.

add_library(terrace_flags INTERFACE)
target_compile_features(terrace_flags INTERFACE cxx_std_20)
target_include_directories(terrace_flags INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(terrace_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wundef $<$<BOOL:${TERRACE_WERROR}>:-Werror>
  -fvisibility=hidden -fno-plt -ftls-model=initial-exec
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fconstexpr-steps=100000000>
  # The allocator implements malloc: the compiler may not assume anything about its own calls to it.
  -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free)
target_compile_definitions(terrace_flags INTERFACE
  TERRACE_VERSION="${PROJECT_VERSION}" $<$<BOOL:${TERRACE_INJECT}>:TERRACE_INJECT=1>)
if(TERRACE_SANITIZE)
  target_compile_definitions(terrace_flags INTERFACE TERRACE_SANITIZED=1)
  add_compile_options(-fsanitize=${TERRACE_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${TERRACE_SANITIZE})
endif()

set(TERRACE_LAYER_OBJECTS "")
function(terrace_layer name)
  set(folders ${ARGN} linux ${CMAKE_SYSTEM_PROCESSOR})
  list(TRANSFORM folders REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/${name}/\\1/*.cpp;${PROJECT_SOURCE_DIR}/src/${name}/\\1/*.S")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp ${folders})
  if(NOT sources)
    return()
  endif()
  add_library(terrace_${name} OBJECT ${sources})
  set_target_properties(terrace_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(terrace_${name} PRIVATE terrace_flags)
  set(TERRACE_LAYER_OBJECTS ${TERRACE_LAYER_OBJECTS} terrace_${name} PARENT_SCOPE)
endfunction()
