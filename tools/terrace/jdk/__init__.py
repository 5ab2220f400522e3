# SPDX-License-Identifier: MIT OR Apache-2.0
"""`terrace jdk`: HotSpot with the buffers of the cores is built, run and tested.

command.py                     what the command's actions do
source.py, installed.py, modules.py, build.py    from Debian's source to a JDK
session.py                     what is compared: settings, results, a suite
programs.py, apps.py, ...      a suite each; looks.py and jtreg_runner.py have what two share
page.py                        docs/guide/jdk-tests.md
"""
