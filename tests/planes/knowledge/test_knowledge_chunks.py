"""Passages: what stays whole, where they stand, and that nothing is lost."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from loom.extraction.reading import Segment
from loom.planes.knowledge import chunks, text
from loom.planes.knowledge.chunks import CHARACTERS_MAX, WORDS_MAX, Chunk, Manner, Place

MARKDOWN, PLAIN = Manner(markdown=True), Manner(markdown=False)
MANY = 1_000_000


def cut(whole: str, manner: Manner = MARKDOWN) -> list[Chunk]:
    parts = list(text.parts([Segment(0, whole)]))
    assert "".join(part.text for part in parts) == whole
    made = chunks.whole(parts, manner, MANY)
    assert made is not None
    return made


def filler(words: int) -> str:
    return " ".join(f"word{number}" for number in range(words))


def test_blocks_stay_whole_where_they_fit() -> None:
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 30
    code = "```py\n" + "x = 1\n\n" * 40 + "```\n"
    listed = "- one\n  more\n\n  - inner\n" * 20
    made = cut(f"# H\n\n{filler(100)}\n\n{table}\n{filler(100)}\n\n{code}\n{listed}")
    for block in (table, code, listed):
        assert sum(block.strip() in chunk.text for chunk in made) == 1


def test_a_long_table_repeats_its_head_and_is_cut_between_rows() -> None:
    rows = [f"| name {number} | value {number} |" for number in range(200)]
    made = cut("intro\n\n| name | value |\n|---|---|\n" + "\n".join(rows))
    tables = [chunk for chunk in made if "| name " in chunk.text]
    assert len(tables) > 2
    for chunk in tables:
        lines = chunk.text.removeprefix("intro\n\n").split("\n")
        assert lines[:2] == ["| name | value |", "|---|---|"]
        assert all(line in rows for line in lines[2:])
    cited = [(chunk.first_line, chunk.last_line) for chunk in tables]
    assert all(one[1] + 1 == other[0] for one, other in pairwise(cited))
    assert cited[-1][1] == 204


def test_a_long_list_is_cut_between_items() -> None:
    items = [f"- item {number}\n  goes on with {filler(10)}" for number in range(60)]
    for chunk in cut("\n".join(items)):
        assert all(part in items for part in chunk.text.replace("\n- ", "\x00- ").split("\x00"))


def test_headings_make_a_path() -> None:
    made = cut("# A\n\na\n\n## B\n\nb\n\n#### D\n\nd\n\n## E\n\ne\n\nOther\n=====\n\nf\n")
    assert [chunk.headings for chunk in made] == [("A",), ("A", "B"), ("A", "B", "D"), ("A", "E"), ("Other",)]


def test_what_looks_like_a_heading_in_code_is_none() -> None:
    made = cut("# A\n\n```sh\n# not a heading\n```\n\n    # nor this\n")
    assert [chunk.headings for chunk in made] == [("A",)]


def test_headings_that_follow_each_other_are_one_passage() -> None:
    made = cut("# A\n\n## B\n\ntext\n")
    assert [(chunk.headings, chunk.first_line, chunk.last_line) for chunk in made] == [(("A", "B"), 1, 5)]


def test_hostile_markdown_is_cut_in_bounded_depth() -> None:
    for hostile in ("> " * 20_000 + "x", "- " * 20_000 + "x", "[" * 50_000, "#" * 50_000, "|" * 50_000, "`" * 50_000):
        assert cut(hostile)


def letters(found: str) -> str:
    return "".join(found.split())


ALPHABET = st.sampled_from(
    ["a", "word", "字字", " ", "\n", "\n\n", "# H\n", "- ", "| a | b |\n|--|--|\n| 1 | 2 |\n", "```\n", "> ", "---\n"]
)


@settings(max_examples=150)
@given(st.lists(ALPHABET, min_size=1, max_size=300), st.booleans(), st.integers(1, 40))
def test_no_word_is_lost_and_every_passage_stands_where_it_says(
    pieces: list[str], markdown: bool, repeated: int
) -> None:
    whole = "".join(pieces) * repeated
    lines = whole.split("\n")
    made = cut(whole, Manner(markdown))
    for chunk in made:
        assert 1 <= chunk.first_line <= chunk.last_line <= len(lines)
        there = "\n".join(lines[chunk.first_line - 1 : chunk.last_line])
        # A table's head is said again above its later rows.
        own = chunk.text if chunk.text in there else chunk.text.split("\n", 2)[-1]
        assert "".join(own.split()) in "".join(there.split())
    total = sum(len(letters(chunk.text)) for chunk in made)
    assert total >= len(letters(whole))


@settings(max_examples=6)
@given(st.integers(0, 40), st.booleans())
def test_stretches_give_what_the_whole_gives(seed: int, markdown: bool) -> None:
    whole = "\n\n".join(f"# H{n}\n\n{filler(50 + (seed * n) % 90)}\n\n- a{n}\n- b{n}" for n in range(300))
    parts = list(text.parts([Segment(0, whole)]))
    manner = Manner(markdown)
    made: list[Chunk] = []
    place = Place()
    while place.part < len(parts):
        stretch = parts[place.part : place.part + 3]
        some, place = chunks.cut(stretch, place, manner, last=place.part + 3 >= len(parts))
        made += some
    assert letters("".join(one.text for one in made)) == letters(whole)
    if markdown:
        assert [(one.headings, one.first_line) for one in made] == [
            (one.headings, one.first_line) for one in cut(whole, manner)
        ]


def test_passages_are_no_longer_than_the_model_reads() -> None:
    for whole in ("x" * 300_000, "word. " * 60_000, "字" * 60_000, "a\n" * 100_000, "a b c " * 50_000):
        for chunk in cut(whole, PLAIN):
            assert len(chunk.text) <= CHARACTERS_MAX + 2
            assert len(chunk.text.split()) <= WORDS_MAX


def test_links_are_not_searched_by_their_address() -> None:
    assert chunks.searchable("T", ["T", "H"], "see [the guide](https://e.org/x?y=z)") == "T > H\nsee [the guide]"
