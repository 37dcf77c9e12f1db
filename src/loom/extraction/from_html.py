"""An HTML page's text as Markdown. Run as a program."""

import sys

from loom.extraction import texts
from loom.extraction.child import Found, Unreadable, serve
from loom.extraction.markup import markdown_of


def extract(content: bytes) -> Found:
    """The page as Markdown; a mark or a `meta` element says the encoding, else it is found out.

    Raises:
        Unreadable: there is no text.
    """
    encoding, mark = texts.encoding_of(content)
    found = markdown_of(content, encoding if mark or encoding != "utf-8" or is_utf8(content) else None)
    if not found.pages[0].strip():
        raise Unreadable("holds no text")
    return found


def is_utf8(content: bytes) -> bool:
    """Whether the bytes are UTF-8, whatever the page says of itself."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(serve(extract))
