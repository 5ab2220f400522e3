# SPDX-License-Identifier: MIT OR Apache-2.0
"""A table of the sites that hold most: for a terminal, by rich."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from terrace.debug.sampled.frames import ENTRIES, Line, Stack, lines_of
from terrace.messages import count
from terrace.profile.model import Profile, Values
from terrace.report.cells import human_bytes, human_count

_SITES = 12
_CALLERS = 5
_LONGEST = 100  # of a name, in characters
# What allocates for others, programs' own functions around malloc too (xmalloc, g_malloc0,
# PyMem_Malloc, _emalloc_56, my_strdup): the site is the first function below.
_ALLOCATES = re.compile(
    ENTRIES + r"|(?i:\w*((m|c|re)alloc(0|array)?(_?\d+|_n)?|strn?dup))$"
    r"|(__)?v?asprintf|(__)?getdelim$|getline$|(std|__gnu_cxx|terrace)::"
)
# What every stack begins with.
_STARTS = re.compile(r"_start$|_dl_start_user$|__libc_start_|start_thread$|(__)?clone3?$")
_PARAMETERS = re.compile(r"<[^<>]*>")
_OPERATOR = re.compile(r"operator(<=>|<<=?|>>=?|->\*?|[<>]=?)")


@dataclass
class Site:
    """Stacks whose first function that is no allocator is the same, at the same line."""

    line: Line
    values: Values = field(default_factory=Values)
    stacks: dict[Stack, float] = field(default_factory=dict)

    def callers(self) -> list[Line]:
        """Of the stack that holds most."""
        stack = max(self.stacks, key=lambda s: abs(self.stacks[s]))
        lines = _listed(stack)
        return lines[_first(lines) + 1 :]


def _listed(stack: Stack) -> list[Line]:
    """Of a script its own functions, for which the interpreter allocates; else all."""
    script = [
        line
        for location in stack
        if location.region is None
        for line in location.lines
        if line.file and not line.file.startswith("node:")
    ]
    return script or list(lines_of(stack)) or [Line("(no stack)")]


def _first(lines: list[Line]) -> int:
    found = (i for i, line in enumerate(lines) if not _ALLOCATES.match(line.function))
    return next(found, max(len(lines) - 1, 0))


def sites(profile: Profile) -> list[Site]:
    """The largest first."""
    found: dict[tuple[str, str], Site] = {}
    for stack, values in profile.stacks.items():
        lines = _listed(stack)
        line = lines[_first(lines)]
        site = found.setdefault((line.function, line.place), Site(line))
        site.values.add(values)
        site.stacks[stack] = profile.shown(values)[1]
    return sorted(found.values(), key=lambda site: -abs(profile.shown(site.values)[1]))


def short(name: str) -> str:
    """Without the parameters of templates, which may be longer than a screen."""
    kept = _OPERATOR.sub(lambda m: m[0].replace("<", "\1").replace(">", "\2"), name)
    while len(kept) > _LONGEST // 2 and (shorter := _PARAMETERS.sub("", kept)) != kept:
        kept = shorter
    kept = kept.replace("\1", "<").replace("\2", ">")
    return kept if len(kept) <= _LONGEST else kept[: _LONGEST - 3] + "..."


def _once(lines: Iterable[Line]) -> list[Line]:
    """Of functions that call themselves the first of each row; without the start of all."""
    listed = [line for line in lines if not _STARTS.match(line.function)]
    return listed[:1] + [b for a, b in pairwise(listed) if b.function != a.function]


def _where(site: Site) -> Text:
    text = Text(short(site.line.function), style="bold", no_wrap=False)
    if site.line.place:
        text.append(f"  {site.line.place}", style="cyan not bold")
    callers = _once(site.callers())
    for line in callers[:_CALLERS]:
        text.append(f"\n  {short(line.function)}", style="dim not bold")
        if line.place:
            text.append(f"  {line.place}", style="dim cyan not bold")
    if len(callers) > _CALLERS:
        text.append(f"\n  and {len(callers) - _CALLERS} more", style="dim not bold")
    return text


def _signed(value: float, text: str, differs: bool) -> Text:
    if not differs:
        return Text(text)
    return Text(("-" if value < 0 else "+") + text, style="blue" if value < 0 else "red")


def print_sites(profile: Profile, console: Console, differs: bool = False) -> None:
    """A row for each site, with the calls that lead to it; in a difference red is what grew."""
    found = sites(profile)
    _, everything = profile.shown(profile.total)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("bytes", *(() if differs else ("share",)), "blocks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("allocated by, called from", overflow="fold")
    for site in found[:_SITES]:
        objects, size = profile.shown(site.values)
        share = () if differs else (f"{100 * size / (everything or 1):.1f} %",)
        table.add_row(
            _signed(size, human_bytes(round(abs(size))), differs), *share,
            _signed(objects, human_count(round(abs(objects)), exact=False), differs),
            _where(site),
        )  # fmt: skip
    if found:
        console.print(table)
    rest = found[_SITES:]
    if rest:
        size = sum(profile.shown(site.values)[1] for site in rest)
        console.print(f"and {count(len(rest), 'more site')}: {human_bytes(round(size))}")
    if differs:
        sign = "-" if everything < 0 else "+"
        line = f"{profile.title}: {sign}{human_bytes(round(abs(everything)))}"
    else:
        line = profile.summary()
    for text in (line, *profile.notes):
        console.print(text, soft_wrap=True, markup=False)
