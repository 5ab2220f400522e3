# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs a file of tests for ctest: status 77 (skipped) without pytest or if each was skipped."""

import sys

SKIPPED = 77


class Count:
    """A plugin that knows how many tests ran to an end."""

    ran = 0

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call" and not report.skipped:
            self.ran += 1


def main(arguments: list[str]) -> int:
    try:
        import pytest
    except ImportError:
        print("pytest is not there: skipped")
        return SKIPPED
    count = Count()
    status = int(pytest.main(["-q", "-rs", "-p", "no:cacheprovider", *arguments], plugins=[count]))
    return SKIPPED if status in (0, 5) and not count.ran else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
