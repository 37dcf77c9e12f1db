"""HTML as Markdown, by Lexbor, Beautiful Soup and markdownify. For child processes only."""

import re
from collections.abc import Callable
from typing import Final, cast

import markdownify
from bs4 import BeautifulSoup
from bs4.dammit import UnicodeDammit
from selectolax.lexbor import LexborHTMLParser, LexborNode

from loom.extraction.child import Found, Unreadable

DEPTH_MAX: Final = 100
"""Elements inside each other; what follows walks them by calling itself, and writes a text anew at every level."""

ELEMENTS_MAX: Final = 200_000
"""Elements of a page; each takes nearly a tenth of a millisecond."""

LEFT_OPEN_MAX: Final = 2_000
"""Tags that nothing has closed so far, before the page is parsed: the parser looks through all of them at every tag.
More than `DEPTH_MAX`, for a page may forget to close some."""

_TAG: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<raw>script|style|textarea|title)\b.*?(?:</(?P=raw)|\Z)|<(?P<end>/?)(?P<name>[a-z][a-z0-9]*)",
    re.IGNORECASE | re.DOTALL,
)
"""A tag, or what holds none: a comment, a script."""
_CLOSE_THEMSELVES: Final = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "p",
        "li",
        "dt",
        "dd",
        "option",
        "optgroup",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "tfoot",
        "colgroup",
        "rp",
        "rt",
        "html",
        "head",
        "body",
    ]
)
"""Elements that have no end, or whose end may be left out."""

TOO_DEEP: Final = f"is nested deeper than {DEPTH_MAX} elements; simplify it"
_UNREAD: Final = ["script", "style", "template", "noscript", "svg", "iframe", "nav", "title"]
_UNSEEN: Final = "[hidden], [aria-hidden=true]"

_to_markdown: Final = cast("Callable[..., str]", markdownify.markdownify)


def markdown_of(html: bytes, encoding: str | None = None) -> Found:
    """The page's title, and its text as Markdown; without scripts, menus, pictures and what is hidden.

    Raises:
        Unreadable: it has too many elements, or they stand too deep in each other.
    """
    known = [] if encoding is None else [encoding]
    text = UnicodeDammit(html, known, is_html=True).unicode_markup or ""
    check_tags(text)
    # Lexbor closes what was left open as browsers do; the Soup's own parser does not.
    tree = LexborHTMLParser(text)
    if is_deep(tree.root):
        raise Unreadable(TOO_DEEP)
    soup = BeautifulSoup(tree.html or "", "html.parser")
    title = soup.title.get_text() if soup.title else ""
    for element in [*soup.find_all(_UNREAD), *soup.select(_UNSEEN)]:
        element.decompose()
    written = _to_markdown(
        str(soup),
        heading_style="ATX",
        bullets="-",
        strip=["img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        table_infer_header=True,
    )
    lines = (line.rstrip() for line in written.split("\n"))
    return Found(title, ["\n".join(lines).strip("\n") + "\n"])


def check_tags(text: str) -> None:
    """Refuse by its tags alone a page that would take the parser minutes.

    Raises:
        Unreadable: it has too many elements, or leaves too many open.
    """
    elements = left_open = 0
    for tag in _TAG.finditer(text):
        if tag["name"] is None:
            continue
        closed = tag["name"].lower() in _CLOSE_THEMSELVES
        if tag["end"]:
            left_open -= not closed
            continue
        elements += 1
        left_open += not closed
        if left_open > LEFT_OPEN_MAX:
            raise Unreadable(TOO_DEEP)
    if elements > ELEMENTS_MAX:
        raise Unreadable(f"has {elements} elements, more than {ELEMENTS_MAX}; split it")


def is_deep(root: LexborNode | None) -> bool:
    """Whether any element has more than `DEPTH_MAX` around it."""
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEPTH_MAX:
            return True
        while node is not None:
            if node.first_child is not None:
                waiting.append((node.first_child, depth + 1))
            node = node.next
    return False
