# SPDX-License-Identifier: MIT OR Apache-2.0
"""Manual pages: terrace(1) of the command line's parser, those of section 3 of the public headers.

A header's text is what the site has (tools/docs/headers.py), and pandoc sets it. Each function has
its name as a link to the page.
"""

import importlib.util
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from terrace.cli import MODULES, make_parser
from terrace.package.making import Source, call


@dataclass(frozen=True)
class Page:
    """One of section 3."""

    name: str
    about: str
    headers: tuple[str, ...]
    see: str


_MALLOC = ("malloc", "options", "stats", "profile", "version")
PAGES = (
    Page(
        "libterrace",
        "malloc with a cache for each CPU core",
        tuple(f"terrace/{name}.h" for name in _MALLOC),
        "terrace(1), terrace-run(1), libterrace_cs(3), libterrace_lab(3), malloc(3)",
    ),
    Page(
        "libterrace_cs",
        "critical sections on data of the CPU core",
        ("terrace/cs.h",),
        "libterrace(3), rseq(2)",
    ),
    Page(
        "libterrace_lab",
        "allocation buffers for runtimes with a moving collector",
        ("terrace/lab.h", "terrace/lab_emit.h"),
        "libterrace(3)",
    ),
    Page("libumem", "object caches and memory by size", ("umem.h",), "vmem(3), terrace(1)"),
    Page("vmem", "arenas of addresses, or of other integers", ("sys/vmem.h",), "libumem(3)"),
)
_ABOUT = "run programs on Terrace's malloc and look into them"
_FUNCTION = re.compile(r"^(?!typedef|static)[a-z][\w *]*?\b([a-z]\w+)\(", re.MULTILINE)
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


def _headers(source: Source) -> Any:
    path = source.root / "tools" / "docs" / "headers.py"
    spec = importlib.util.spec_from_file_location("headers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def functions(text: str) -> list[str]:
    """Those that a header declares."""
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return list(dict.fromkeys(_FUNCTION.findall(code)))


def _markdown(page: Page, texts: dict[str, str], module: Any) -> str:
    names = [page.name, *(name for text in texts.values() for name in functions(text))]
    parts = [f"# NAME\n\n{', '.join(names)} - {page.about}"]
    for header, text in texts.items():
        body = _LINK.sub(r"*\1*", module.page(f"include/{header}", text).partition("\n")[2])
        parts.append(f"# {header}\n\n{body.strip()}")
    return "\n\n".join([*parts, f"# SEE ALSO\n\n{page.see}\n"])


def _date(source: Source) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(int(source.epoch)))


def _write_page(source: Source, page: Page, folder: Path) -> None:
    texts = {h: (source.root / "include" / h).read_text(encoding="utf-8") for h in page.headers}
    markdown = folder / f"{page.name}.md"
    markdown.write_text(_markdown(page, texts, _headers(source)), encoding="utf-8")
    about = {
        "title": page.name.upper(),
        "section": "3",
        "date": _date(source),
        "footer": f"terrace {source.version}",
        "header": "Terrace",
    }
    options = [f"--metadata={key}={value}" for key, value in about.items()]
    made = f"{page.name}.3"
    call(["pandoc", "--standalone", "--to=man", *options, "-o", made, markdown.name], folder)
    markdown.unlink()
    for text in texts.values():
        for name in functions(text):
            (folder / f"{name}.3").symlink_to(made)


def _tool_page(source: Source) -> str:
    from argparse_manpage.manpage import Manpage

    data = {
        "format": "single-commands-section",
        "date": _date(source),
        "description": _ABOUT,
        "manual_title": "Terrace",
        "project_name": "terrace",
        "version": source.version,
    }
    return str(Manpage(make_parser(list(MODULES)), data))


def write(source: Source, share: Path) -> None:
    """All pages, below `share`."""
    first, third = (share / "man" / section for section in ("man1", "man3"))
    first.mkdir(parents=True)
    third.mkdir()
    (first / "terrace.1").write_text(_tool_page(source), encoding="utf-8")
    shutil.copyfile(source.recipes / "man" / "terrace-run.1", first / "terrace-run.1")
    for page in PAGES:
        _write_page(source, page, third)
