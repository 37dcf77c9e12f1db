"""A profile as one prompt fragment. Pure.

Stored text is data: it can neither close the element it stands in, nor begin
a heading of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from loom import xml_text

NONE = "-"
CONTAINERS = r"(?:[ \t]*(?:>|[-+*](?=[ \t])|[0-9]{1,9}[.)](?=[ \t])))*[ \t]*"
"""Quote and list markers that a heading may stand behind."""

ATX = re.compile(rf"({CONTAINERS})(#{{1,6}}(?=[ \t]|$))")
SETEXT = re.compile(rf"({CONTAINERS})((?:=+|-+)[ \t]*$)")
HTML = re.compile(r"<(?=(?:h[1-6]|script|pre|style|textarea)(?:[\s/>]|$)|!--|!\[CDATA\[|![a-z]|\?)", re.IGNORECASE)
"""What begins a heading, or a block that goes on until it is closed and so could swallow the sections behind it."""

FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")
CLOSING = re.compile(r"((?:^|[ \t]))(#+[ \t]*$)")


@dataclass(frozen=True, slots=True)
class Part:
    """One section as it is rendered. `agent` and `user_id` are `-` for none."""

    label: str
    text: str
    agent: str
    user_id: str


def xml(parts: Sequence[Part]) -> str:
    """One `profile` element with a `section` each; empty without sections."""
    if not parts:
        return ""
    return "\n".join(["<profile>", *map(_element, parts), "</profile>"])


def markdown(parts: Sequence[Part]) -> str:
    """A second-level heading and the text, for each section; empty without sections."""
    return "\n\n".join(f"## {_heading(part.label)}\n\n{_body(part.text)}" for part in parts)


def _element(part: Part) -> str:
    named = (("label", part.label), ("agent", part.agent), ("user_id", part.user_id))
    attributes = "".join(
        f' {name}="{xml_text.attribute(value)}"' for name, value in named if name == "label" or value != NONE
    )
    return f"<section{attributes}>{xml_text.content(part.text)}</section>"


def _heading(label: str) -> str:
    line = HTML.sub("&lt;", " ".join(label.splitlines()))
    return CLOSING.sub(r"\1\\\2", line)


def _body(text: str) -> str:
    lines = text.splitlines(keepends=True)
    fence = _open_fence(lines)
    return "".join(map(_line, lines)) + (f"\n{fence}" if fence else "")


def _open_fence(lines: Sequence[str]) -> str:
    """The mark of a code block that the text leaves open; empty for none.

    Left open, it would make code of the sections behind it.
    """
    fence = ""
    for line in lines:
        found = FENCE.match(line.rstrip("\r\n"))
        if found is None:
            continue
        mark, rest = found.groups()
        if not fence:
            fence = mark
        elif mark.startswith(fence) and not rest.strip():
            fence = ""
    return fence


def _line(line: str) -> str:
    content = line.splitlines()[0]
    ending = line[len(content) :]
    for pattern in (ATX, SETEXT):
        content = pattern.sub(r"\1\\\2", content, count=1) if pattern.match(content) else content
    return HTML.sub("&lt;", content) + ending
