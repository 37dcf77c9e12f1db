"""What each language's files define and use."""

import random

import pytest
from code_samples import SOURCES

from loom.planes.code.extract import Extracted, extracted
from loom.planes.code.languages import LANGUAGES, grammar_of


def read(path: str, text: str) -> Extracted:
    grammar = grammar_of(path, text)
    assert grammar is not None
    return extracted(grammar, text)


def test_every_language_has_a_sample() -> None:
    assert set(SOURCES) == set(LANGUAGES)


@pytest.mark.parametrize("language", sorted(SOURCES))
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_definitions_and_uses(language: str, ending: str) -> None:
    path, text, symbols, uses, (documented, words) = SOURCES[language]
    found = read(path, text.replace("\n", ending))
    assert not found.broken
    assert {(one.kind, one.qualified) for one in found.symbols} == symbols
    assert uses <= {(one.name, one.role, one.receiver) for one in found.uses}
    assert next(one.docstring for one in found.symbols if one.qualified == documented) == words


def test_lines_and_signatures() -> None:
    found = read(*SOURCES["python"][:2])
    kettle, hot = (next(one for one in found.symbols if one.name == name) for name in ("Kettle", "hot"))
    assert (kettle.start_line, kettle.end_line, kettle.signature) == (6, 15, "class Kettle(Vessel, metal.Thing)")
    assert (hot.start_line, hot.end_line, hot.signature) == (12, 15, "def hot(self) -> bool")
    assert found.symbols[hot.parent] is kettle


@pytest.mark.parametrize("language", sorted(SOURCES))
def test_broken_code_still_gives_what_is_whole(language: str) -> None:
    path, text, symbols, _, _ = SOURCES[language]
    found = read(path, text + "\n)]} ((( \n")
    assert found.broken
    assert {(one.kind, one.qualified) for one in found.symbols} & symbols


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("empty.py", ""),
        ("blank.js", " \n\n"),
        ("words.go", "this is no code at all, ünïcode 漢字 🙂"),
        ("only_comment.rs", "// nothing"),
        ("nul_free.c", "\x01\x02\x03 int main() {"),
    ],
)
def test_odd_texts_are_read_without_an_error(path: str, text: str) -> None:
    assert len(read(path, text).symbols) <= 1


def test_depth_costs_no_stack() -> None:
    deep = read("deep.py", "(" * 100_000 + "\n")
    assert deep.symbols == []
    nested = read("nested.py", "x = " + "[" * 20_000 + "]" * 20_000 + "\ndef after(): pass\n")
    assert nested.symbols[-1].name == "after"
    classes = "".join(f"{' ' * depth}class C{depth}:\n" for depth in range(300)) + " " * 300 + "pass\n"
    assert read("classes.py", classes).symbols[-1].qualified.startswith("C0.C1.")


def test_a_parse_that_takes_too_long_is_given_up() -> None:
    ticks = iter(range(0, 1_000_000, 10))
    grammar = grammar_of("a.py")
    assert grammar is not None
    given_up = extracted(grammar, "x = 1\n" * 50_000, clock_s=lambda: float(next(ticks)))
    assert given_up.cut
    assert given_up.symbols == []


def test_counts_are_bounded() -> None:
    many = read("many.py", "".join(f"def f{number}(): pass\n" for number in range(6_000)))
    assert many.cut
    assert len(many.symbols) == 5_000


def test_any_bytes_of_a_source_can_be_missing() -> None:
    rng = random.Random(7)  # noqa: S311  # not a secret
    for path, text, *_ in SOURCES.values():
        for _ in range(5):
            start = rng.randrange(len(text))
            read(path, text[:start] + text[start + rng.randrange(40) :])


def test_a_comment_belongs_to_what_stands_right_below_it() -> None:
    found = read(
        "a.js",
        "// far away\n\nfunction one() {}\n\n// near\nfunction two() {}\nlet x = 1; // beside\nfunction three() {}\n",
    )
    assert {one.name: one.docstring for one in found.symbols} == {"one": "", "two": "near", "x": "", "three": ""}


def test_headers_and_scripts_are_known_by_what_they_hold() -> None:
    names = [
        grammar.name if (grammar := grammar_of(path, head)) else ""
        for path, head in [
            ("a.h", "int f(void);"),
            ("a.h", "class A {};"),
            ("run", "#!/usr/bin/env python3\n"),
            ("run", "#!/bin/sh\n"),
            ("A.PY", ""),
            ("notes.txt", ""),
        ]
    ]
    assert names == ["c", "cpp", "python", "", "python", ""]
