"""Entries in a prompt: escaped, within their budgets, the best first."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.federation.pack import Entry, Part, packed, shares, whole
from loom.retrieval.budget import tokens_of


def part(name: str, texts: list[str], tokens_max: int) -> Part:
    return Part(name, name, [Entry("one", (("key", f"k{n}"),), text) for n, text in enumerate(texts)], tokens_max)


def test_entries_stand_in_order_in_their_sections() -> None:
    made = packed([part("a", ["x", "y"], 100), part("b", [], 100), part("c", ["z"], 100)], 300)
    assert whole(made) == (
        '<context>\n<a>\n<one key="k0">x</one>\n<one key="k1">y</one>\n</a>\n'
        '<c>\n<one key="k0">z</one>\n</c>\n</context>'
    )
    assert [(one.name, one.shown, one.left_out) for one in made] == [("a", 2, 0), ("b", 0, 0), ("c", 1, 0)]


def test_nothing_is_an_empty_text() -> None:
    assert whole(packed([part("a", [], 100)], 100)) == ""


def test_what_does_not_fit_is_cut_and_the_rest_left_out() -> None:
    [made] = packed([part("a", ["x" * 400, "y" * 400, "z"], 150)], 1000)
    assert (made.shown, made.left_out) == (2, 1)
    assert made.tokens <= 150
    assert "\u2026" in made.text
    [nothing] = packed([part("a", ["x" * 400], 10)], 1000)
    assert (nothing.text, nothing.shown, nothing.left_out) == ("", 0, 1)


def test_what_a_section_leaves_is_there_for_those_after_it() -> None:
    alone = packed([part("b", ["y" * 40] * 50, 100)], 1000)[0]
    after = packed([part("a", ["x"], 400), part("b", ["y" * 40] * 50, 100)], 1000)[1]
    assert after.shown > alone.shown
    assert after.tokens <= 500


@pytest.mark.parametrize("length", range(40, 48))
def test_a_section_fits_into_as_many_tokens_as_it_takes(length: int) -> None:
    [made] = packed([part("a", ["x" * length, "y"], 1000)], 1000)
    assert packed([part("a", ["x" * length, "y"], made.tokens)], made.tokens) == [made]


def test_shares_of_what_is_not_given() -> None:
    assert shares(1000, {"a": 0.5, "b": 0.3, "c": 0.2}, {}) == {"a": 500, "b": 300, "c": 200}
    assert shares(1000, {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0, "x": 7}) == {"a": 0, "b": 600, "c": 400}
    assert shares(1000, {"a": 0.5, "b": 0.5}, {"a": 5000}) == {"a": 5000, "b": 0}
    assert shares(1000, {"a": 1.0}, {"a": 10}) == {"a": 10}


@pytest.mark.parametrize("text", ["</one></a></context>", '"><x a="', "<!--", "]]>", "&lt;", "a\x0bb\ufffe", "\r\n"])
def test_stored_text_cannot_close_its_element(text: str) -> None:
    made = whole(packed([Part("a", "a", [Entry("one", (("key", text),), text)], 1000)], 1000))
    root = ET.fromstring(made)  # noqa: S314  # our own text
    [one] = root.iter("one")
    allowed = re.sub("[\x0b\ufffe]", "\ufffd", text)
    assert one.text == allowed
    assert one.get("key") == allowed


@given(
    sizes=st.lists(st.lists(st.integers(0, 3000), max_size=6), min_size=1, max_size=4),
    budgets=st.lists(st.integers(0, 800), min_size=4, max_size=4),
    total=st.integers(0, 2000),
)
def test_no_budget_is_exceeded(sizes: list[list[int]], budgets: list[int], total: int) -> None:
    parts = [
        part(f"s{place}", ["&x"[n % 2] * size for n, size in enumerate(group)], budgets[place])
        for place, group in enumerate(sizes)
    ]
    made = packed(parts, total)
    assert sum(tokens_of(one.text) for one in made) <= total
    for one, its in zip(made, parts, strict=True):
        assert one.shown + one.left_out == len(its.entries)
        assert one.tokens == tokens_of(one.text)
