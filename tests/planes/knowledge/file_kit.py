"""Files to read, made on the spot."""

import io
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import docx
from reportlab.lib import pdfencrypt
from reportlab.pdfgen import canvas

LINE_HEIGHT: Final = 14
TOP: Final = 800

_Canvas: Final = cast("Callable[..., Any]", canvas.Canvas)
_encryption: Final = cast("Callable[..., Any]", pdfencrypt.StandardEncryption)
_Document: Final = cast("Callable[[], Any]", docx.Document)


def pdf(
    pages: Sequence[Sequence[str]], *, title: str = "", outline: Sequence[tuple[int, str]] = (), password: str = ""
) -> bytes:
    """A PDF of pages of lines; `outline` has a page, from 1, and a title for each entry of its table of contents."""
    file = io.BytesIO()
    made = _Canvas(file, encrypt=_encryption(password) if password else None)
    made.setTitle(title or "untitled")
    for number, lines in enumerate(pages, start=1):
        for page, entry in outline:
            if page == number:
                made.bookmarkPage(entry)
                made.addOutlineEntry(entry, entry, 0)
        for place, line in enumerate(lines):
            made.drawString(50, TOP - LINE_HEIGHT * place, line)
        made.showPage()
    made.save()
    return file.getvalue()


def word(*paragraphs: tuple[str, str], rows: Sequence[Sequence[str]] = (), title: str = "") -> bytes:
    """A Word document of paragraphs, each a style and a text, and a table."""
    made = _Document()
    made.core_properties.title = title
    for style, text in paragraphs:
        made.add_paragraph(text, style=style)
    if rows:
        table = made.add_table(len(rows), len(rows[0]))
        for row, cells in zip(table.rows, rows, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    file = io.BytesIO()
    made.save(file)
    return file.getvalue()


def package(**entries: bytes) -> bytes:
    """A compressed archive; `__` in a name stands for a slash, and every name ends in `.xml`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return file.getvalue()


WORD_BODY: Final = (
    b'<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
)
