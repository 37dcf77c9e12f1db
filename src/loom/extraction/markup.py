"""HTML as Markdown, by Lexbor, Beautiful Soup and markdownify. For child processes only."""

from collections.abc import Callable
from typing import Final, cast

import markdownify
from bs4 import BeautifulSoup
from bs4.dammit import UnicodeDammit
from selectolax.lexbor import LexborHTMLParser, LexborNode

from loom.extraction.child import Found, Unreadable

DEPTH_MAX: Final = 250
"""Elements inside each other; what follows walks them by calling itself."""

_UNREAD: Final = ["script", "style", "template", "noscript", "svg", "iframe", "nav", "title"]
_UNSEEN: Final = "[hidden], [aria-hidden=true]"

_to_markdown: Final = cast("Callable[..., str]", markdownify.markdownify)


def markdown_of(html: bytes, encoding: str | None = None) -> Found:
    """The page's title, and its text as Markdown; without scripts, menus, pictures and what is hidden.

    Raises:
        Unreadable: its elements stand too deep in each other.
    """
    known = [] if encoding is None else [encoding]
    text = UnicodeDammit(html, known, is_html=True).unicode_markup or ""
    # Lexbor closes what was left open as browsers do; the Soup's own parser does not.
    tree = LexborHTMLParser(text)
    if is_deep(tree.root):
        raise Unreadable(f"is nested deeper than {DEPTH_MAX} elements; simplify it")
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
