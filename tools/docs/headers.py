# SPDX-License-Identifier: MIT OR Apache-2.0
"""A page of the API from a public header: what it says, in its order, each declaration by its name.

The comments of the headers are prose, with @argument at the beginning of a line for an argument,
and code indented. One comment is for all declarations up to the next empty line. Doxygen needs a
comment for each, in its own markup, and orders them by kind.
"""

import re

_GUARD = re.compile(
    r"#ifdef __cplusplus\n[^#]*#endif\n|#ifndef \w+_H\n#define \w+_H\n|#include .*\n|#endif\s*\Z"
)
_MARKUP = re.compile(
    r"`?(?P<page>\bdocs/[\w/.-]+\.md\b)`?|(?P<code>`[^`]*`|@\w+|\w*_\w+(?:\(\)|(?:\.\w+)+)?|\b\w+\(\))|[*<>\[\]]"
)
_ARGUMENT = re.compile(r"@\w+(, @\w+)*:")
_PARAGRAPH = re.compile(r"Returns|Threads:|Cost:")
_NAME = re.compile(
    r"^(?:# *define (\w+)|(?:enum|struct|union) (\w+)(?= \{|;)|typedef .*?(\w+)(?:\)?\(.*|;)$"
    r"|\w[\w *]*?(\w+)\()",
    re.MULTILINE,
)


def is_public(path: str) -> bool:
    """Whether programs include it."""
    return path.startswith("include/") and path.endswith(".h")


def _blocks(text: str) -> list[str]:
    """What stands between empty lines, those in comments and braces aside."""
    blocks: list[str] = [""]
    depth, in_comment = 0, False
    for line in text.split("\n"):
        if not line.strip() and depth == 0 and not in_comment:
            blocks.append("")
            continue
        blocks[-1] += line + "\n"
        in_comment = (
            line.rfind("/*") > line.rfind("*/") if "/*" in line or "*/" in line else in_comment
        )
        depth += line.count("{") - line.count("}")
    return [block for block in blocks if block.strip()]


def _marked(line: str, up: str) -> str:
    """Names as code, pages as links, and no other markup."""

    def mark(match: re.Match[str]) -> str:
        if match["page"]:
            return f"[{match['page']}]({up}{match['page']})"
        if match["code"]:
            return f"`{match['code'].strip('`@')}`"
        return f"&#{ord(match[0])};"

    return _MARKUP.sub(mark, line)


def _prose(comment: str, up: str) -> str:
    """A comment as Markdown: paragraphs, items for arguments, indented code."""
    body = re.sub(r"^/\*+\s*(\* )?|\s*\*/\s*\Z", "", comment)
    body = re.sub(r"^(struct )?\w+(, \w+)* - (\w?)", lambda found: found[3].upper(), body)
    lines = [re.sub(r"^ ?\* ?", "", line).rstrip() for line in body.split("\n")]
    out: list[str] = [""]
    item = False  # whether the last line is part of one
    for line in lines:
        if _ARGUMENT.match(line):
            out += [*([] if item else [""]), f"- {_marked(line, up)}"]
            item = True
        elif item and line.startswith(" "):
            out.append(f"  {_marked(line.strip(), up)}")
        elif line.startswith("    ") and (not out[-1] or out[-1].startswith("    ")):
            out.append(line)
        else:
            out += [*([""] if item or _PARAGRAPH.match(line) else []), _marked(line.strip(), up)]
            item = False
    return "\n".join(out).strip("\n")


def _names(code: str) -> list[str]:
    """What a block declares."""
    plain = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    plain = re.sub(r"\{[^\n]+\}|\{\n.*?\n\}", "{}", plain, flags=re.DOTALL)
    return list(dict.fromkeys(next(filter(None, found)) for found in _NAME.findall(plain)))


def _section(block: str, up: str) -> str:
    match = re.match(r"/\*.*?\*/\n", block, re.DOTALL)
    comment, code = (match[0], block[match.end() :]) if match else ("", block)
    prose = _prose(comment.strip(), up)
    if not code.strip():
        return prose
    names = _names(code)
    title = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    anchors = "".join(f'<a id="{name}"></a>' for name in names) if len(names) > 1 else ""
    heading = f"## {title}\n\n{anchors}\n\n" if names else ""
    return f"{heading}~~~~~~c\n{code.strip()}\n~~~~~~\n\n{prose}"


def page(path: str, text: str) -> str:
    """The page as Markdown."""
    up = "../" * path.count("/")
    blocks = _blocks(_GUARD.sub("", text.partition("\n")[2]))
    name = path.removeprefix("include/")
    sections = "\n\n".join(_section(block, up) for block in blocks)
    return f"# {name}\n\n~~~c\n#include <{name}>\n~~~\n\n{sections}\n"
