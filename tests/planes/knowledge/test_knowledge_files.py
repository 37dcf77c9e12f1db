"""Files of every format, and files that are odd, broken or made to harm."""

import codecs
import sys
from collections.abc import Callable, Mapping

import pytest
from file_kit import WORD_BODY, package, pdf, word
from knowledge_kit import add, add_file, found, in_base64, read_all, refused, row_counts

from fakes import Core
from loom.errors import Rejected
from loom.extraction import formats, reading

GERMAN = "Die Größe der Übung hängt schön von der Straße ab."
HEBREW, ARABIC = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627"

ODD = {
    "plain": (b"one\ntwo\n", "one\ntwo"),
    "no line end": (b"one", "one"),
    "byte order mark": (codecs.BOM_UTF8 + "größe".encode(), "größe"),
    "CRLF": (b"one\r\ntwo\r\n", "one\ntwo"),
    "mixed line ends": (b"one\rtwo\r\nthree\nfour\n\rfive", "one\ntwo\nthree\nfour\n\nfive"),
    "UTF-16 with a mark": ("\ufeffgröße".encode("utf-16-le"), "größe"),
    "UTF-16 big end first": ("\ufeffgröße".encode("utf-16-be"), "größe"),
    "UTF-16 without a mark": ("just plain words".encode("utf-16-le"), "just plain words"),
    "UTF-32": (codecs.BOM_UTF32_LE + "größe \U0001f701".encode("utf-32-le"), "größe \U0001f701"),
    "Latin-1": (GERMAN.encode("latin-1"), GERMAN),
    "French": ("l\u2019été déjà passé, ça va".encode("cp1252"), "l\u2019été déjà passé, ça va"),
    "Polish": ("Zażółć gęślą jaźń i inne słowa".encode("cp1250"), "Zażółć gęślą jaźń i inne słowa"),
    "Russian": ("Привет, как дела сегодня вечером".encode("koi8-r"), "Привет, как дела сегодня вечером"),
    "Japanese": ("これは日本語の文章です。茶碗".encode("shift_jis"), "これは日本語の文章です。茶碗"),
    "right to left": (f"{HEBREW}\n{ARABIC}".encode(), f"{HEBREW}\n{ARABIC}"),
    "nested quotes": (b"""he said "she said 'they said "no"'" \\" '' "" ` `` """, None),
    "astral": ("\U0001d49c \U0001f469\u200d\U0001f467 e\u0301 last".encode(), None),
    "line separators that are none here": ("a\u2028b\x0bc\x0cd".encode(), None),
    "markup that is text": (b"a <b> & </profile> {{x}} %s ${y} -- '; DROP TABLE", None),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_texts_are_kept_as_they_are(core: Core, name: str) -> None:
    content, text = ODD[name]
    made = add_file(core, content, uri="odd", media_type="text/plain")
    expected = content.decode() if text is None else text
    assert read_all(core, document_id=made["document_id"]) == expected
    assert made["line_count"] == expected.count("\n") + 1
    assert made["state"] == "ready"
    assert found(core, expected.split()[-1])


@pytest.mark.slow
def test_one_line_of_five_megabytes_is_read_and_found(core: Core) -> None:
    text = "and so it goes on. " * 130_000 + "Then a walrus came. " + "and so it goes on. " * 135_000
    assert len(text) > 5_000_000
    made = add_file(core, text.encode(), uri="long", file_name="long.txt")
    core.drain()
    assert made["line_count"] == 1
    assert read_all(core, uri="long") == text
    hit = found(core, "walrus", top_k=1)[0]
    assert "Then a walrus came." in hit["text"]
    assert (hit["first_line"], hit["last_line"]) == (1, 1)


def test_a_pdf_is_cited_by_page_and_heading(core: Core) -> None:
    content = pdf(
        [["Chapter One", "The walrus sleeps."], ["More on the walrus."], ["Chapter Two", "The gnomon casts a shadow."]],
        title="Field notes",
        outline=[(1, "Chapter One"), (3, "Chapter Two")],
    )
    made = add_file(core, content, file_name="notes.pdf", uri="notes")
    assert (made["title"], made["page_count"], made["format"], made["revision"]) == ("Field notes", 3, "pdf", 1)
    hit = found(core, "gnomon shadow", top_k=1)[0]
    assert (hit["first_page"], hit["last_page"], hit["headings"]) == (3, 3, ["Chapter Two"])
    assert core.call("knowledge.get", uri="notes", page=2)["text"] == "More on the walrus."
    lines = core.call("knowledge.get", uri="notes", first_line=hit["first_line"], line_count=2)["text"]
    assert lines == "Chapter Two\nThe gnomon casts a shadow."


def test_a_table_that_goes_on_over_a_page_is_one_passage(core: Core) -> None:
    rows = [f"part {number} costs {number} crowns" for number in range(8)]
    add_file(core, pdf([rows[:5], rows[5:]]), file_name="table.pdf")
    hit = found(core, "crowns", top_k=1)[0]
    assert (hit["first_page"], hit["last_page"]) == (1, 2)
    assert hit["text"].split("\n") == rows


def test_a_word_document_keeps_headings_lists_and_tables(core: Core) -> None:
    content = word(
        ("Heading 1", "Handbook"),
        ("Normal", "Welcome."),
        ("Heading 2", "Tea"),
        ("List Bullet", "green"),
        ("List Bullet", "black"),
        rows=[["cup", "price"], ["small", "2"]],
        title="The handbook",
    )
    made = add_file(core, content, file_name="handbook.docx")
    assert (made["title"], made["format"]) == ("The handbook", "docx")
    hit = found(core, "green black", top_k=1)[0]
    assert hit["headings"] == ["Handbook", "Tea"]
    assert "- green\n- black" in hit["text"]
    assert "| small | 2 |" in hit["text"]


def test_html_is_read_as_browsers_do_without_what_is_not_text(core: Core) -> None:
    page = (
        b"<!doctype html><title>Tea &amp; cake</title><style>p{}</style><nav>menu</nav><h1>Kinds<h2>Green</h2>"
        b"<p>From <b>Uji</b>.<script>alert('walrus')</script><p hidden>hidden</p>"
        b"<table><tr><th>a<th>b<tr><td>1<td>2</table><pre>x  =  1\n  y</pre>"
    )
    made = add_file(core, page, uri="https://example.org/tea")
    assert (made["title"], made["format"]) == ("Tea & cake", "html")
    text = read_all(core, uri="https://example.org/tea")
    assert "From **Uji**." in text
    assert "| 1 | 2 |" in text
    assert "x  =  1\n  y" in text
    assert not {"alert", "menu", "hidden"} & set(text.replace("(", " ").split())
    assert found(core, "Uji", top_k=1)[0]["headings"][-1] == "Green"


def test_what_looks_like_tags_in_scripts_and_comments_is_not_counted(core: Core) -> None:
    loop = b"for(i=0;i<n;i++){a<b}" * 5_000
    page = b"<p>one</p><script>" + loop + b"</script><!-- " + loop + b" --><p>two</p><style>" + loop
    add_file(core, page, uri="page", file_name="page.html")
    assert read_all(core, uri="page").split() == ["one", "two"]


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-8", "windows-1252", "shift_jis"])
def test_html_in_the_charset_it_names(core: Core, charset: str) -> None:
    word_ = "茶碗" if charset == "shift_jis" else "Größe"
    page = f"<html><head><meta charset={charset}></head><body><p>{word_} here</p></body></html>"
    add_file(core, page.encode(charset), uri="page")
    assert read_all(core, uri="page") == f"{word_} here"


def deep_word() -> bytes:
    return package(word__document=WORD_BODY + b"<w:p>" * 300_000)


def bomb() -> bytes:
    return package(word__document=b"<a>" + bytes(200_000_000))


BROKEN: Mapping[str, tuple[bytes | Callable[[], bytes], str, str]] = {
    "empty": (b"", "a.md", "send one of"),
    "blank": (b" \n\t\r\n ", "a.md", "a.md is empty"),
    "a byte order mark alone": (codecs.BOM_UTF8, "a.md", "a.md is empty"),
    "encrypted PDF": (pdf([["secret"]], password="x"), "a.pdf", "a.pdf is encrypted"),
    "half a PDF": (pdf([["text"] * 40] * 20)[:4000], "a.pdf", "a.pdf is damaged"),
    "PDF in name alone": (b"hello", "a.pdf", "a.pdf is damaged"),
    "PDF without text": (pdf([[], []]), "scan.pdf", "scan.pdf holds no text"),
    "half a DOCX": (word(("Normal", "text"))[:2000], "a.docx", "a.docx is damaged"),
    "DOCX in name alone": (b"hello", "a.docx", "a.docx is damaged"),
    "another archive": (package(xl__workbook=b"<a/>"), "a.docx", "a.docx is an archive"),
    "encrypted DOCX": (b"\xd0\xcf\x11\xe0" + bytes(600), "a.docx", "a.docx is encrypted"),
    "zip bomb": (bomb, "a.docx", "a.docx unpacks to more than"),
    "entity bomb": (
        package(
            word__document=b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">'
            + b"".join(b'<!ENTITY %c "%s">' % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(12))
            + b"]><a>&m;</a>"
        ),
        "a.docx",
        "a.docx is damaged",
    ),
    "deep DOCX": (deep_word, "a.docx", "a.docx is"),
    "deep HTML": (b"<div>" * 500 + b"x", "a.html", "a.html is nested deeper"),
    "HTML that opens thousands of elements": (b"<div>" * 50_000 + b"x", "a.html", "a.html is nested deeper"),
    "HTML of too many elements": (b"<p>x" * 300_000, "a.html", "a.html has 300000 elements"),
    "empty HTML": (b"<html><body><script>x</script></body></html>", "a.html", "a.html holds no text"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "a.png", "a.png is neither a text"),
    "program": (b"\x7fELF" + bytes(4096), "a", "a is neither a text"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_named_and_leaves_nothing(core: Core, name: str) -> None:
    content, file_name, said = BROKEN[name]
    if not isinstance(content, bytes):  # what is large is made when it is needed
        content = content()
    error = refused(Rejected, add_file, core, content, file_name=file_name)
    assert said in error.message
    assert error.extras["field"] in ("content_base64", "text")
    assert row_counts(core) == {"document": 0, "revision": 0, "text": 0, "chunk": 0, "upload": 0}


def test_a_broken_new_revision_leaves_the_old_one(core: Core) -> None:
    add(core, "The walrus sleeps.", uri="notes")
    refused(Rejected, add_file, core, b"%PDF-1.7 no", uri="notes", file_name="notes.pdf")
    assert [hit["revision"] for hit in found(core, "walrus")] == [1]


def test_a_media_type_that_cannot_be_read_is_refused(core: Core) -> None:
    error = refused(Rejected, core.call, "knowledge.add", content_base64=in_base64(b"x"), media_type="image/png")
    assert error.extras["field"] == "media_type"


@pytest.mark.parametrize("content", ["AAA", "%%%", "ä"])
def test_what_is_no_base64_is_refused(core: Core, content: str) -> None:
    error = refused(Rejected, core.call, "knowledge.add", content_base64=content)
    assert "is not base64" in error.message


@pytest.mark.parametrize(
    ("content", "media_type", "name", "expected"),
    [
        (b"%PDF-1.4", "text/plain", "a.txt", "pdf"),
        (b"junk\n%PDF-1.4", "", "", "pdf"),
        (b"PK\x03\x04", "", "a.docx", "docx"),
        (b"# a", "", "docs/A.MD?x=1#y", "markdown"),
        (b"# a", "text/markdown; charset=utf-8", "a.txt", "markdown"),
        (b"a", "text/x-python", "a.py", "plain"),
        (b"  <!DOCTYPE HTML><p>", "", "page", "html"),
        (b"a,b", "", "C:\\data\\a.csv", "plain"),
        (b"", "", "", "plain"),
    ],
)
def test_the_format_is_told_by_content_type_and_name(content: bytes, media_type: str, name: str, expected: str) -> None:
    assert formats.format_of(content, media_type, name) == expected


def test_the_child_is_bounded_in_memory() -> None:
    # 40 million elements of HTML would take gigabytes as a tree.
    with pytest.raises(reading.Unreadable):
        reading.read(b"<p>" * (reading.HTML_BYTES_MAX // 3 + 1), formats.HTML)


def test_a_server_that_only_starts_reads_no_parser() -> None:
    heavy = {"pypdfium2", "mammoth", "bs4", "markdownify", "selectolax", "charset_normalizer"}
    assert "loom.planes.knowledge" in sys.modules
    assert not {name for name in heavy if f"loom.extraction.from_{name}" in sys.modules}
