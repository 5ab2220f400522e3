# SPDX-License-Identifier: MIT OR Apache-2.0
"""For Conan 2, of the sources that this file lies in: `conan create packaging/conan`."""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy

SOURCES = (
    "CMakeLists.txt",
    "LICENSE-*",
    "README.md",
    "cmake/*",
    "include/*",
    "src/*",
    "tools/record/*",
    "packaging/tar/*",
)


class Terrace(ConanFile):
    name = "terrace"
    description = "malloc with a cache for each CPU core"
    license = "MIT OR Apache-2.0"
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"
    test_package_folder = "../source/consumer"

    def _sources(self):
        return Path(self.recipe_folder).parent.parent

    def set_version(self):
        text = (self._sources() / "CMakeLists.txt").read_text(encoding="utf-8")
        self.version = re.search(r"project\(terrace VERSION (\S+)", text).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._sources(), self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("Terrace is for Linux on x86-64 and aarch64")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(
            TERRACE_TESTS=False, TERRACE_BENCH=False, TERRACE_WERROR=False
        )
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE-*", self.source_folder, Path(self.package_folder) / "licenses")
        CMake(self).install()

    def package_info(self):
        # CMake finds all libraries by the files that are installed; others get the shared one.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/terrace"]
        self.cpp_info.libs = ["terrace"]
