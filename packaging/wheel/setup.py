# SPDX-License-Identifier: MIT OR Apache-2.0
"""The wheel has libraries, so it is of one platform; it has no extension modules, so it is for every Python 3."""

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithLibraries(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


setup(distclass=WithLibraries, cmdclass={"bdist_wheel": Wheel})
