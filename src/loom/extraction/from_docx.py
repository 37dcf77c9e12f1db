"""A Word document's text as Markdown, by mammoth. Run as a program."""

import io
import sys
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from typing import Final, Protocol, cast
from xml.parsers.expat import ExpatError

import mammoth

from loom.extraction.child import Found, Unreadable, serve
from loom.extraction.markup import markdown_of

ENTRIES_MAX: Final = 10_000
UNPACKED_BYTES_MAX: Final = 48 * 1024 * 1024
"""Of the parts that are read: XML takes many times its size in memory."""

_BODY: Final = "word/document.xml"
_CORE: Final = "docProps/core.xml"
_TITLE: Final = "{http://purl.org/dc/elements/1.1/}title"
_ENCRYPTED_BIT: Final = 0x1
_OLE_MAGIC: Final = b"\xd0\xcf\x11\xe0"


class _Converted(Protocol):
    value: str


_html_of: Final = cast("Callable[..., _Converted]", mammoth.convert_to_html)  # pyright: ignore[reportUnknownMemberType]


def extract(content: bytes) -> Found:
    """The document as Markdown, pictures left out.

    Raises:
        Unreadable: encrypted, damaged, no Word document, without text, or a bomb.
    """
    if content.startswith(_OLE_MAGIC):
        raise Unreadable("is encrypted, or of an old format; save it as DOCX without a password")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as package:
            check(package)
            title = _title_of(package)
        html = _html_of(io.BytesIO(content), convert_image=_no_image).value
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError, IndexError, AttributeError, OSError, ExpatError):
        raise Unreadable("is damaged or no DOCX; save it again") from None
    found = markdown_of(html.encode(), "utf-8")
    if not found.pages[0].strip():
        raise Unreadable("holds no text")
    return Found(title, found.pages)


def check(package: zipfile.ZipFile) -> None:
    """Unreadable unless the archive is a Word document of a bearable size.

    An entry is never read beyond the size that the archive states for it.
    """
    entries = package.infolist()
    if len(entries) > ENTRIES_MAX:
        raise Unreadable(f"holds more than {ENTRIES_MAX} parts")
    read = [entry for entry in entries if entry.filename.endswith((".xml", ".rels"))]
    if any(entry.flag_bits & _ENCRYPTED_BIT for entry in read):
        raise Unreadable("is encrypted; remove its password first")
    if sum(entry.file_size for entry in read) > UNPACKED_BYTES_MAX:
        raise Unreadable(f"unpacks to more than {UNPACKED_BYTES_MAX} bytes of text; split it")
    if _BODY not in package.namelist():
        raise Unreadable("is an archive but no DOCX")


def _title_of(package: zipfile.ZipFile) -> str:
    try:
        core = ET.fromstring(package.read(_CORE))  # noqa: S314  # within this process's limits
    except (KeyError, ET.ParseError):
        return ""
    return (core.findtext(_TITLE) or "").strip()


def _no_image(image: object) -> list[object]:
    del image
    return []


if __name__ == "__main__":
    sys.exit(serve(extract))
