# SPDX-License-Identifier: MIT OR Apache-2.0
# cmake -DPACKAGES=DIR -P vcpkg.cmake: runs the port's portfile, with plain CMake in place of vcpkg's functions, into DIR.
cmake_minimum_required(VERSION 3.25)
set(PORT terrace)
set(CURRENT_PORT_DIR ${CMAKE_CURRENT_LIST_DIR}/../vcpkg)
set(CURRENT_PACKAGES_DIR ${PACKAGES})

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  execute_process(COMMAND ${CMAKE_COMMAND} -G Ninja -S ${arg_SOURCE_PATH} -B ${PACKAGES}-build -DCMAKE_BUILD_TYPE=Release
                          -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${PACKAGES}-build COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${PACKAGES}-build --prefix ${PACKAGES} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_config_fixup)  # the files stay where they are
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  file(READ ${PACKAGES}/${arg_CONFIG_PATH}/${PORT}-config.cmake found)
endfunction()

function(vcpkg_fixup_pkgconfig)
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  foreach(file ${arg_FILE_LIST})
    file(READ ${file} text)
    file(APPEND ${PACKAGES}/share/${PORT}/copyright "${text}")
  endforeach()
endfunction()

include(${CURRENT_PORT_DIR}/portfile.cmake)
