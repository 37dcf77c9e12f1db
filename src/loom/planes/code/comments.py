"""Comments as documentation: which belong to a definition, and their text without the signs."""

import inspect
import re
from dataclasses import dataclass, field
from typing import Final

from tree_sitter import Node

from loom.planes.code.grammar import text_of

DOCSTRING_CHARACTERS_MAX: Final = 2_000
COMMENT_LINES_MAX: Final = 200

_OPENING: Final = re.compile(r"^\s*(?:/\*+!?|//[/!]?|#+!?|--+|;+)\s?")
_CLOSING: Final = re.compile(r"\s*\*+/\s*$")
_STAR: Final = re.compile(r"^\s*\*+ ?")
_QUOTES: Final = re.compile(r"^[A-Za-z]{0,2}(\"\"\"|'''|\"|')(.*)\1$", re.DOTALL)
_XML: Final = re.compile(r"</?(?:summary|remarks|para|returns|param|c|see)\b[^>]*>")
_PATH_ENDING: Final = re.compile(r"\.(?:h|hh|hpp|hxx|js|ts|rb|py)\Z")


@dataclass(slots=True)
class Notes:
    """The comments of a file that stand on lines of their own, by the line they end on."""

    ends: dict[int, tuple[int, str]] = field(default_factory=dict[int, tuple[int, str]])

    def add(self, node: Node, source: bytes) -> None:
        """Remember a comment, unless code stands before it on its line."""
        start = node.start_byte - node.start_point.column
        if source[start : node.start_byte].strip():
            return
        self.ends[_last_row(node)] = (node.start_point.row, text_of(node, source))

    def pass_over(self, node: Node) -> None:
        """Remember that a definition may follow this node as if it were not there."""
        self.ends[_last_row(node)] = (node.start_point.row, "")

    def above(self, row: int) -> str:
        """The text of the comments that end on the line before `row`, one after the other; each is given once."""
        parts: list[str] = []
        for _ in range(COMMENT_LINES_MAX):
            found = self.ends.pop(row - 1, None)
            if found is None or found[0] >= row:
                break
            row, text = found
            parts.append(text)
        return cleaned("\n".join(reversed([part for part in parts if part])))


def _last_row(node: Node) -> int:
    """The last line with text of the node; some grammars let a comment end at the start of the next."""
    end = node.end_point
    return end.row - 1 if end.column == 0 and end.row > node.start_point.row else end.row


def cleaned(comment: str) -> str:
    """A comment's words, without its signs."""
    if not comment:
        return ""
    lines = [
        _STAR.sub("", _OPENING.sub("", _CLOSING.sub("", line)))
        for line in comment[: 4 * DOCSTRING_CHARACTERS_MAX].split("\n")
    ]
    text = _XML.sub("", "\n".join(line.rstrip() for line in lines)).strip()
    return text[:DOCSTRING_CHARACTERS_MAX]


def docstring_in(body: Node | None, source: bytes) -> str:
    """The string that a Python body begins with."""
    if body is None:
        return ""
    first = next((child for child in body.named_children if child.type != "comment"), None)
    if first is None or first.type != "expression_statement" or not first.named_children:
        return ""
    held = first.named_children[0]
    if held.type != "string":
        return ""
    match = _QUOTES.match(text_of(held, source))
    return inspect.cleandoc(match[2])[:DOCSTRING_CHARACTERS_MAX] if match else ""


def imported_name(text: str) -> str:
    """What an import names: the last part of a path in quotes or brackets, without its ending."""
    bare = text.strip("<>\"'")
    return _PATH_ENDING.sub("", bare.replace("\\", "/").rpartition("/")[2])
