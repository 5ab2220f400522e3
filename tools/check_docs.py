#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fails on a relative link in a Markdown file that leads nowhere, and on a number that is not the one of its source.

A comment behind a paragraph, list or table says where its numbers come from:

    <!-- src/level/slot.h: 8 KiB = slot_size; 248 = slot_words; a quarter = 1 / bound_share -->
    <!-- docs/guide/figures.md: 1.22 = "| 10000 | 74.89" -->

Left: the number as the paragraph has it, which must be there. Right: an expression over constants of that file and of what it
includes (a member as `object.member`, what an assertion compares as `sizeof(Record)`), or a quotation of a line of that file.

check_docs.py               checks the checkout
check_docs.py --selftest    plants each kind of fault and must find it
"""

import pathlib
import re
import subprocess
import sys
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
MARKER = re.compile(r"<!--\s+([\w./-]+\.(?:h|cpp|txt|py|md)):\s([^=>]+?=.*?)-->", re.S)
ASSIGNED = r"\s*={1,2}\s*((?:[^,;{}()&\"]|\([^,;{}()]*\))+)"
INCLUDE = re.compile(r'#\s*include\s+"([^"]+)"')
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10, "twelve": 12,
    "a half": Fraction(1, 2), "a third": Fraction(1, 3), "a quarter": Fraction(1, 4), "a sixth": Fraction(1, 6),
    "an eighth": Fraction(1, 8), "a sixteenth": Fraction(1, 16), "a 32nd": Fraction(1, 32),
}  # fmt: skip


class Unknown(Exception):
    """No constant of that name, or none that can be computed."""


class Source:
    """A file, and the constants that it and its headers define."""

    def __init__(self, path: pathlib.Path) -> None:
        self.text = path.read_text()
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", self.text, flags=re.S)
        self.code = re.sub(r"'(?=\d)", "", re.sub(r"\b(?:std::)?\w+\{(\d+)U?\}", r"\1", code))  # std::size_t{1} is 1
        self.headers = [ROOT / "src" / name for name in INCLUDE.findall(self.text)]

    def value(self, name: str) -> Fraction:
        outer, _, member = name.partition(".")
        start = re.search(rf"\b{outer}\b\s*\{{", self.code) if member else None
        code = self.code[start.start() :].partition(";")[0] if start else self.code
        wanted = rf"\.{member}" if start else rf"(?<![\w.]){re.escape(name)}"
        for match in re.finditer(wanted + ASSIGNED, code):
            try:
                return Fraction(self.evaluate(match[1]) // 1)  # the sources divide integers
            except (Unknown, SyntaxError):
                continue
        for header in self.headers:
            if header.exists():
                try:
                    return Source(header).value(name)
                except Unknown:
                    continue
        raise Unknown(name)

    def evaluate(self, expression: str) -> Fraction:
        plain = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", re.sub(r"\b\w+::", "", expression)).strip()
        names = sorted(set(re.findall(r"sizeof\(\w+\)|(?<![\w.])[a-zA-Z_]\w*(?:\.\w+)?", plain)), key=len, reverse=True)
        known = {f"n{i}": self.value(name) for i, name in enumerate(names)}
        for key, name in zip(known, names):
            plain = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", key, plain)
        if not re.fullmatch(r"[\w\s+*/()<-]+", plain):
            raise Unknown(expression)
        shifted = re.sub(r"(\S+)\s*<<\s*(\S+)", r"\1 * 2 ** \2", plain)
        return Fraction(eval(re.sub(r"\b(\d+)\b", r"Fraction(\1)", shifted), {"Fraction": Fraction}, known))


def number(text: str) -> Fraction:
    """Of "8,192", "8 KiB", "3/8", "16th", "2^18", "a quarter"."""
    if text in WORDS:
        return Fraction(WORDS[text])
    digits, _, unit = text.replace(",", "").removesuffix("th").partition(" ")
    if match := re.fullmatch(r"(\d+)\^(\d+)", digits):
        return Fraction(int(match[1]) ** int(match[2]))
    return Fraction(digits) * UNITS.get(unit, 1)


def fault(paragraph: str, source: Source, item: str) -> str:
    """What is wrong with one `number = where it comes from`; "" if nothing."""
    text, _, origin = (" ".join(part.split()) for part in item.partition("="))
    if not re.search(rf"(?<![\w.,/^]){re.escape(text)}(?![\w/^]|[.,]\d)", paragraph):
        return f"{text} is not in the paragraph"
    if origin.startswith('"'):
        return "" if text in origin and origin.strip('"') in " ".join(source.text.split()) else f"no line has {origin}"
    try:
        value = source.evaluate(origin)
        return "" if number(text) == value else f"{text}: {origin} is {value}"
    except (Unknown, ValueError, SyntaxError) as error:
        return f"{text} = {origin}: cannot be computed ({error!r})"


def number_faults(page: str) -> list[str]:
    found = []
    for marker in MARKER.finditer(page):
        file = ROOT / marker[1]
        paragraph = MARKER.sub("", page[: marker.start()].rstrip().rsplit("\n\n", 1)[-1])
        if not file.exists():
            found.append(f"{marker[1]} does not exist")
            continue
        faults = (fault(" ".join(paragraph.split()), Source(file), item) for item in marker[2].split(";"))
        found += [f"{marker[1]}: {text}" for text in faults if text]
    return found


def link_faults(page: str, folder: pathlib.Path) -> list[str]:
    targets = (t for t in LINK.findall(page) if "://" not in t and not t.startswith("mailto:"))
    return [f"{target} does not exist" for target in targets if not (folder / target).exists()]


def selftest() -> int:
    good = 'A slot has 8 KiB, 248 words\nand a quarter.\n<!-- src/level/slot.h: 8 KiB = slot_size; 248 = slot_words -->\n'
    plants = {
        "another number": good.replace("248", "249"),
        "another unit": good.replace("8 KiB", "8 MiB"),
        "not in the text": good.replace("248 words", "some words"),
        "part of a longer number": good.replace("248 words", "1,248 words"),
        "in an earlier paragraph": good.replace("words\n", "words\n\n"),
        "no such constant": good.replace("slot_words", "slot_wards"),
        "no such file": good.replace("slot.h", "slots.h"),
        "a share": good.replace("8 KiB = slot_size", "a quarter = 1 / large_words * 2"),
        "no such line": good.replace("248 = slot_words", '248 = "slot_words = 249"'),
    }  # fmt: skip
    missed = [name for name, page in plants.items() if not number_faults(page)]
    missed += [f"falsely: {fault}" for fault in number_faults(good)]
    missed += [] if link_faults("[a](nowhere.md)", ROOT) else ["link"]
    for name in missed:
        print(f"not found: {name}")
    return 1 if missed else 0


def main() -> int:
    if sys.argv[1:] == ["--selftest"]:
        return selftest()
    files = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = 0
    for name in files:
        page = (ROOT / name).read_text()
        for text in link_faults(page, (ROOT / name).parent) + number_faults(page):
            print(f"{name}: {text}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
