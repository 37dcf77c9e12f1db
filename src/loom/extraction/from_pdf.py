"""A PDF's text, page by page, by PDFium. Run as a program."""

import sys
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, cast

import pypdfium2

from loom.extraction.child import CHARACTERS_MAX, OUTLINE_MAX, Found, Unreadable, serve

PAGES_MAX: Final = 20_000
_WRONG_PASSWORD: Final = 4
_SOFT_BREAKS: Final = {0xFFFE: "-", 0x02: "-", 0x0C: "\n", 0xA0: " "}
"""PDFium marks a hyphen at a line's end so."""


class _Closes(Protocol):
    def close(self) -> None: ...


class _Text(_Closes, Protocol):
    def get_text_bounded(self) -> str: ...


class _Page(_Closes, Protocol):
    def get_textpage(self) -> _Text: ...


class _Target(Protocol):
    def get_index(self) -> int | None: ...


class _Bookmark(Protocol):
    level: int

    def get_title(self) -> str: ...
    def get_dest(self) -> _Target | None: ...


class _Document(Protocol):
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> _Page: ...
    def get_toc(self, max_depth: int = 15) -> Iterable[_Bookmark]: ...
    def get_metadata_dict(self) -> dict[str, str]: ...


def extract(content: bytes) -> Found:
    """The text of every page.

    Raises:
        Unreadable: encrypted, damaged, without text, or too long.
    """
    document = _opened(content)
    count = len(document)
    if count > PAGES_MAX:
        raise Unreadable(f"has {count} pages, at most {PAGES_MAX} are read; split it")
    pages: list[str] = []
    length = 0
    for number in range(count):
        text = _text_of(document, number)
        length += len(text)
        if length > CHARACTERS_MAX:
            raise Unreadable(f"holds more than {CHARACTERS_MAX} characters; split it")
        pages.append(text)
    if not any(page.strip() for page in pages):
        raise Unreadable("holds no text; if it is a scan, run it through text recognition first")
    return Found(_title_of(document), pages, list(_outline(document)))


def _opened(content: bytes) -> _Document:
    try:
        return cast("_Document", pypdfium2.PdfDocument(content))
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", None) == _WRONG_PASSWORD:
            raise Unreadable("is encrypted; remove its password first") from None
        raise Unreadable("is damaged or no PDF; export it again") from None


def _text_of(document: _Document, number: int) -> str:
    """One page's text; a page that cannot be read makes the file a damaged one."""
    try:
        page = document[number]
        text = page.get_textpage()
        found = text.get_text_bounded()
        text.close()
        page.close()
    except pypdfium2.PdfiumError:
        raise Unreadable(f"is damaged: page {number + 1} cannot be read; export it again") from None
    return found.translate(_SOFT_BREAKS)


def _title_of(document: _Document) -> str:
    title = document.get_metadata_dict().get("Title", "")
    return "" if title.strip().lower() in ("", "untitled", "anonymous") else title


def _outline(document: _Document) -> Iterator[tuple[int, int, str]]:
    try:
        for number, mark in enumerate(document.get_toc()):
            if number >= OUTLINE_MAX:
                return
            target = mark.get_dest()
            index = None if target is None else target.get_index()
            if index is not None:
                yield index + 1, mark.level + 1, mark.get_title()
    except pypdfium2.PdfiumError:
        return


if __name__ == "__main__":
    sys.exit(serve(extract))
