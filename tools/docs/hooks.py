# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the site has beside docs/: the repository's other pages, and the files that pages link to.

Every page keeps its path in the repository, so that a relative link leads to the same place in
both. A file of the sources that a page links to becomes a page itself (PATH.md), a folder a list of
what is in it, and a public header a page of the API.
"""

import fnmatch
import posixpath
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headers
from mkdocs.structure.files import File, Files, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_LINK = re.compile(r"(\]\()([^)#\s:]+)(?=[)#])")
_LIST = re.compile(r"([-*]|\d+\.) ")
_IN_LIST = re.compile(r" |([-*]|\d+\.) ")
_TEMPLATE = "docs/adr/0000-template.md"  # in no menu
_ASIDE = "---\nsearch: {exclude: true}\nhide: [navigation, toc]\n---\n"
_MOST_BYTES = 64 * 1024  # a longer file is not made a page, but copied
_LANGUAGES = {
    ".S": "gas",
    ".pml": "c",
    ".h": "cpp",
    ".txt": "text",
    ".map": "text",
    ".list": "text",
}


def _root(config: "MkDocsConfig") -> Path:
    return Path(config.docs_dir).parent


def _tracked(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if (root / name).is_file()]


def _targets(page: str, text: str) -> set[str]:
    """The paths in the repository that a page links to."""
    folder = posixpath.dirname(page)
    return {posixpath.normpath(posixpath.join(folder, m[2])) for m in _LINK.finditer(text)}


def _source_page(root: Path, path: str) -> str:
    text = (root / path).read_text(encoding="utf-8")
    suffix = Path(path).suffix
    language = _LANGUAGES.get(suffix, suffix.lstrip(".") or "text")
    return f"{_ASIDE}# {path}\n\n~~~~~~{language}\n{text}\n~~~~~~\n"


def _folder_page(path: str, tracked: list[str]) -> str:
    inside = (name[len(path) + 1 :] for name in tracked if name.startswith(f"{path}/"))
    names = sorted({name.partition("/")[0] for name in inside})
    return f"{_ASIDE}# {path}/\n\n" + "".join(f"- `{name}`\n" for name in names)


def _generated(config: "MkDocsConfig", path: str, content: str) -> File:
    return File.generated(config, path, content=content, inclusion=InclusionLevel.NOT_IN_NAV)


def on_config(config: "MkDocsConfig") -> None:
    """In the navigation a pattern stands for what matches it, and a header for its page."""
    tracked = _tracked(_root(config))

    def expanded(items: list[Any]) -> list[Any]:
        found: list[Any] = []
        for item in items:
            if isinstance(item, dict):
                found += [{k: expanded(v) if isinstance(v, list) else v} for k, v in item.items()]
                continue
            # A folder's overview comes first, its template not at all.
            paths = sorted(
                fnmatch.filter(tracked, item), key=lambda p: (not p.endswith("README.md"), p)
            )
            found += [
                f"{p}.md" if p.endswith(".h") else p for p in paths or [item] if p != _TEMPLATE
            ]
        return found

    config.nav = expanded(config.nav or [])


def on_files(files: Files, config: "MkDocsConfig") -> Files:
    """The repository's pages and figures in place of those in docs/, then what they link to."""
    root, site = _root(config), config.site_dir
    tracked = _tracked(root)
    result = Files([f for f in files if f.src_dir != config.docs_dir])  # the theme's
    targets = {name for name in tracked if headers.is_public(name)}
    for name in tracked:
        if name.endswith((".md", ".png", ".svg")):
            result.append(File(name, str(root), site, config.use_directory_urls))
        if name.endswith(".md"):
            targets |= _targets(name, (root / name).read_text(encoding="utf-8"))
    result.append(File("site.css", str(Path(__file__).parent), site, config.use_directory_urls))
    for path in sorted(targets - set(result.src_uris)):
        if (root / path).is_dir():
            result.append(_generated(config, f"{path}/index.md", _folder_page(path, tracked)))
        elif headers.is_public(path) and path in tracked:
            content = headers.page(path, (root / path).read_text(encoding="utf-8"))
            result.append(_generated(config, f"{path}.md", content))
        elif path in tracked and (root / path).stat().st_size <= _MOST_BYTES:
            result.append(_generated(config, f"{path}.md", _source_page(root, path)))
        elif path in tracked:
            result.append(File(path, str(root), site, config.use_directory_urls))
    if template := result.get_file_from_path(_TEMPLATE):
        template.inclusion = InclusionLevel.NOT_IN_NAV
    return result


def _separated(text: str) -> str:
    """Without comments, and with an empty line before each list: Python-Markdown needs it."""
    lines: list[str] = []
    fenced = False
    for line in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split("\n"):
        before = lines[-1] if lines else ""
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and _LIST.match(line) and before and not _IN_LIST.match(before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def on_page_markdown(markdown: str, page: "Page", files: Files, **_: Any) -> str:
    """A link to a file of the sources leads to its page."""
    if page.file.generated_by:
        return markdown
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    folder = posixpath.dirname(page.file.src_uri)

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[2]))
        for made in (f"{path}.md", f"{path}/index.md"):
            if path not in files.src_uris and made in files.src_uris:
                return match[1] + posixpath.relpath(made, folder or ".")
        return match[0]

    return _LINK.sub(link, _separated(markdown))
