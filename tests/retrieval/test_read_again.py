"""What a cross-encoder is given to read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.retrieval.fuse import MEANING, READING, WORDS, fuse
from loom.retrieval.reading import WINDOW_CHARACTERS, Reading, is_english, joined, window
from loom.retrieval.tokens import query
from loom.storage.indexes import Scored

ORDER = fuse(
    {
        WORDS: [Scored(1, 9.0), Scored(2, 6.0), Scored(3, 5.0), Scored(4, 1.0)],
        MEANING: [Scored(3, 0.8), Scored(1, 0.7)],
    },
    {WORDS: 0.4, MEANING: 0.6},
    {WORDS: 0.0, MEANING: 0.5},
)
SCORES = st.dictionaries(st.integers(1, 5), st.floats(allow_nan=True))


@pytest.mark.parametrize(
    ("question", "english"),
    [
        ("When did Caroline go to the support group?", True),
        ("postgres backup schedule", True),
        ("What did Zoë say about the café?", True),
        ("Wann wurde die Brücke gebaut?", False),
        ("Wer war der erste Kaiser", False),
        ("Quel est le nom de la rue", False),
        ("¿Cuándo se fundó la ciudad?", False),
        ("学校在哪里", False),
        ("где школа", False),
        ("1234 ?!", False),
    ],
)
def test_english_is_told_from_other_languages(question: str, english: bool) -> None:
    assert is_english(question) is english


def test_a_short_text_is_read_whole_and_of_a_long_one_the_part_that_was_asked_for() -> None:
    asked = query("who keeps the walrus?")
    assert window("Ana keeps the walrus.", asked) == "Ana keeps the walrus."
    long = "Nothing of note happened on that day.\n\n" * 60 + "Ana keeps the walrus.\n\n" + "It rained again.\n\n" * 60
    part = window(long, asked)
    assert "walrus" in part
    assert len(part) <= WINDOW_CHARACTERS


def parts_read(scores: dict[int, float]) -> Reading:
    """What was said of all texts that were given."""
    return Reading(scores, len(scores), in_part=True)


@given(SCORES, st.floats(0.0, 1.0))
def test_scores_of_parts_add_up_and_stay_in_bounds(scores: dict[int, float], weight: float) -> None:
    for one in joined(ORDER, parts_read(scores), weight):
        parts = one.components.values()
        assert sum(part.normalised * part.weight for part in parts) == pytest.approx(one.score)
        assert sum(part.weight for part in parts) == pytest.approx(1.0)
        assert -1e-9 <= one.score <= 1.0 + 1e-9


@given(SCORES)
def test_what_was_not_read_keeps_its_score(scores: dict[int, float]) -> None:
    before = {one.item_id: one.score for one in ORDER}
    for one in joined(ORDER, parts_read(scores), 0.5):
        if one.item_id not in scores:
            assert one.score == pytest.approx(before[one.item_id])
            assert one.raw(READING) is None


def test_the_part_that_answers_comes_first_and_where_none_does_the_order_stays() -> None:
    assert joined(ORDER, parts_read({2: 9.0, 1: -9.0, 3: -9.0}), 0.5)[0].item_id == 2
    poor = parts_read({one.item_id: -40.0 - one.item_id for one in ORDER})
    assert [one.item_id for one in joined(ORDER, poor, 0.5)] == [one.item_id for one in ORDER]
    assert joined([], parts_read({1: 1.0}), 0.5) == []


def test_the_fewer_were_read_the_less_it_weighs() -> None:
    weights = [joined(ORDER, Reading({1: 3.0}, given, in_part=True), 0.5)[0].components for given in (1, 2, 10)]
    assert [parts[READING].weight for parts in weights] == pytest.approx([0.5, 0.25, 0.05])
