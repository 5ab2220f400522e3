# SPDX-License-Identifier: MIT OR Apache-2.0
# cmake --install: the shared object, the archive, the archive of the LAB engine, headers, pkg-config and CMake config files,
# licences.
if(TERRACE_SANITIZE)
  return()
endif()
include(CMakePackageConfigHelpers)

set_target_properties(terrace_shared PROPERTIES EXPORT_NAME terrace)
set_target_properties(terrace_static PROPERTIES EXPORT_NAME static)
# The archive's users link by C: thread-local data and dlopen come from libc.
target_link_libraries(terrace_static INTERFACE ${CMAKE_DL_LIBS})

install(TARGETS terrace_shared terrace_static terrace_lab_archive EXPORT terrace
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/terrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE-MIT ${CMAKE_SOURCE_DIR}/LICENSE-APACHE ${CMAKE_SOURCE_DIR}/README.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/terrace)
install(EXPORT terrace NAMESPACE terrace:: FILE terrace-targets.cmake DESTINATION ${config_dir})
configure_file(${CMAKE_SOURCE_DIR}/cmake/terrace-config.cmake.in ${CMAKE_BINARY_DIR}/terrace-config.cmake COPYONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/terrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/terrace-config.cmake ${CMAKE_BINARY_DIR}/terrace-config-version.cmake
        DESTINATION ${config_dir})

foreach(package terrace terrace-lab)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${package}.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
