# SPDX-License-Identifier: MIT OR Apache-2.0
# cmake --install: the shared object, the archive, the archives of critical sections and of the LAB engine, headers, pkg-config and CMake config files,
# licences.
if(TERRACE_SANITIZE OR NOT TERRACE_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)

install(TARGETS terrace_shared terrace_static terrace_cs_archive terrace_lab_archive EXPORT terrace
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
terrace_preload_name(terrace_shared)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/packaging/tar/terrace-run DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/terrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE-MIT ${PROJECT_SOURCE_DIR}/LICENSE-APACHE ${PROJECT_SOURCE_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/terrace)
install(EXPORT terrace NAMESPACE terrace:: FILE terrace-targets.cmake DESTINATION ${config_dir})
configure_file(${PROJECT_SOURCE_DIR}/cmake/terrace-config.cmake.in ${PROJECT_BINARY_DIR}/terrace-config.cmake COPYONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/terrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/terrace-config.cmake ${PROJECT_BINARY_DIR}/terrace-config-version.cmake
        DESTINATION ${config_dir})

# terrace_package(PACKAGE LIBRARY VERSION DESCRIPTION [WHAT A STATIC LINK NEEDS...])
function(terrace_package package library version description)
  list(JOIN ARGN " " private)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/package.pc.in ${PROJECT_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
terrace_package(terrace terrace ${PROJECT_VERSION} "${PROJECT_DESCRIPTION}" -ldl -lpthread)
terrace_package(terrace-cs terrace_cs ${PROJECT_VERSION} "Critical sections on per-processor data, without locks and atomic instructions")
terrace_package(terrace-lab terrace_lab ${PROJECT_VERSION}
                "Local allocation buffers of threads, cores, processors and nodes for garbage-collected heaps")
if(PROJECT_IS_TOP_LEVEL)  # as libumem itself
  terrace_package(umem umem ${TERRACE_UMEM_VERSION} "Object caches, memory by size and arenas with libumem's interface" -ldl -lpthread)
endif()
