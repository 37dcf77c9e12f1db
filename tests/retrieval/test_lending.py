"""What neighbours lend each other, and what an assistant's turns count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.retrieval.fuse import MEANING, NEIGHBOURS, WORDS, Fused, fuse
from loom.retrieval.lending import REPLY_SHARE, SHARES, WHOLE, asks_what_was_answered, lent, lowered
from loom.storage.indexes import Scored

WEIGHTS = {WORDS: 0.4, MEANING: 0.6}


def ranking(*scores: float) -> list[Fused]:
    return fuse({MEANING: [Scored(place, score) for place, score in enumerate(scores)]}, WEIGHTS, {MEANING: 0.0})


def total(one: Fused) -> float:
    return sum(part.normalised * part.weight for part in one.components.values())


def test_a_turn_is_raised_by_its_best_neighbour_alone() -> None:
    order = lent(ranking(1.0, 0.2, 0.5, 0.3), [(0, 1, 1), (2, 1, 1), (0, 2, 2)])
    by_id = {one.item_id: one for one in order}
    assert by_id[1].score == pytest.approx((0.2 + SHARES[1] * 1.0) / WHOLE)
    assert by_id[2].score == pytest.approx((0.5 + SHARES[2] * 1.0) / WHOLE)
    assert by_id[3].score == pytest.approx(0.3 / WHOLE)
    assert by_id[3].components[NEIGHBOURS].raw is None
    assert [one.item_id for one in order] == [0, 2, 1, 3]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7))))
def test_every_score_is_the_sum_of_its_shares_and_at_most_one(
    scores: list[float], links: list[tuple[int, int]]
) -> None:
    beside = [(one, other, 1) for one, other in links if one != other]
    for one in lowered(lent(ranking(*scores), beside), {0}):
        assert one.score == pytest.approx(total(one))
        assert 0.0 <= one.score <= 1.0 + 1e-9


def test_an_assistants_turns_keep_a_share() -> None:
    order = lowered(ranking(1.0, 0.9), {0})
    assert [one.item_id for one in order] == [1, 0]
    assert order[1].score == pytest.approx(REPLY_SHARE)


@pytest.mark.parametrize(
    ("question", "is_asked_back"),
    [
        ("What book did you recommend to me?", True),
        ("the steps you listed for the migration", True),
        ("You had also suggested a hotel: which?", True),
        ("What was your recommendation?", True),
        ("Can you tell me when my sprint ends?", False),
        ("Which database do we use?", False),
        ("Could you show me how I set up login?", False),
    ],
)
def test_a_question_about_what_was_answered(question: str, is_asked_back: bool) -> None:
    assert asks_what_was_answered(question) is is_asked_back
