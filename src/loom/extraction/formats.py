"""Which format a file has: what it begins with, then its media type, then its name."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final, Literal

Format = Literal["markdown", "plain", "html", "pdf", "docx"]

MARKDOWN: Final = "markdown"
PLAIN: Final = "plain"
HTML: Final = "html"
PDF: Final = "pdf"
DOCX: Final = "docx"

MEDIA_TYPES: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "text/markdown": MARKDOWN,
        "text/x-markdown": MARKDOWN,
        "text/plain": PLAIN,
        "text/html": HTML,
        "application/xhtml+xml": HTML,
        "application/pdf": PDF,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": DOCX,
    }
)

SUFFIXES: Final[Mapping[str, Format]] = MappingProxyType(
    {
        ".md": MARKDOWN,
        ".markdown": MARKDOWN,
        ".mdx": MARKDOWN,
        ".txt": PLAIN,
        ".text": PLAIN,
        ".rst": PLAIN,
        ".adoc": PLAIN,
        ".org": PLAIN,
        ".tex": PLAIN,
        ".log": PLAIN,
        ".csv": PLAIN,
        ".tsv": PLAIN,
        ".html": HTML,
        ".htm": HTML,
        ".xhtml": HTML,
        ".pdf": PDF,
        ".docx": DOCX,
    }
)
"""What files of a folder are taken for documents."""

HEAD_BYTES: Final = 1024
_PDF_MAGIC: Final = b"%PDF-"
_ZIP_MAGIC: Final = b"PK\x03\x04"
_HTML_START: Final = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE)


class UnknownFormat(Exception):
    """The media type is none that can be read."""


def format_of(content: bytes, media_type: str, name: str) -> Format:
    """The format of a file.

    Args:
        content: the file, or its beginning.
        media_type: what the sender says it is; parameters such as `charset` are passed over; empty if nothing.
        name: a file name or uri; empty if there is none.

    Raises:
        UnknownFormat: the media type is given, and is neither a text nor one of `MEDIA_TYPES`.
    """
    head = content[:HEAD_BYTES]
    if head.startswith(_ZIP_MAGIC):
        return DOCX
    if _PDF_MAGIC in head:
        return PDF
    said = media_type.partition(";")[0].strip().lower()
    if said:
        if said in MEDIA_TYPES:
            return MEDIA_TYPES[said]
        if said.startswith("text/"):
            return PLAIN
        raise UnknownFormat(said)
    named = SUFFIXES.get(suffix_of(name))
    if named is not None:
        return named
    return HTML if _HTML_START.match(head) else PLAIN


def suffix_of(name: str) -> str:
    """The last suffix of a file name or uri, in lower case; empty if there is none."""
    path = re.split(r"[?#]", name, maxsplit=1)[0]
    return PurePosixPath(path.replace("\\", "/")).suffix.lower()


def is_named(name: str) -> bool:
    """Whether a file name or uri tells the format."""
    return suffix_of(name) in SUFFIXES
