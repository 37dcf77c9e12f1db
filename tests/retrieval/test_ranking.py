"""Fusion, recipes, calibration and explanation."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loom.retrieval.calibrate import (
    Calibrated,
    Evidence,
    calibrated,
    confidence,
    coverage,
    evidence,
    nearness,
    standing,
)
from loom.retrieval.dates import INTERVALS_MAX, Interval, intervals, time_scores
from loom.retrieval.explain import explained
from loom.retrieval.fuse import MEANING, READING, TIME, WORDS, fuse
from loom.retrieval.lending import lent, lowered
from loom.retrieval.recipes import RECIPES, RecipeName
from loom.retrieval.tokens import document, query
from loom.storage.indexes import Scored

HALVES = {WORDS: 0.5, MEANING: 0.5}
SCORES = st.lists(st.builds(Scored, st.integers(1, 12), st.floats(-5, 50, allow_nan=False)), max_size=12)


@given(SCORES, SCORES)
def test_the_order_legs_answer_in_makes_no_difference(words: list[Scored], meaning: list[Scored]) -> None:
    before = fuse({WORDS: words, MEANING: meaning}, HALVES)
    after = fuse({MEANING: list(reversed(meaning)), WORDS: sorted(words, key=lambda one: one.score)}, HALVES)
    assert before == after


@given(SCORES, SCORES)
def test_scores_lie_in_bounds_and_are_the_sum_of_their_shares(words: list[Scored], meaning: list[Scored]) -> None:
    ranking = fuse({WORDS: words, MEANING: meaning}, HALVES, {WORDS: 0.0})
    assert {one.item_id for one in ranking} == {one.item_id for one in [*words, *meaning]}
    for one in ranking:
        assert 0.0 <= one.score <= 1.0 + 1e-9
        assert one.score == pytest.approx(sum(part.normalised * part.weight for part in one.components.values()))
    order = [(-one.score, one.item_id) for one in ranking]
    assert order == sorted(order)


def test_how_far_ahead_a_hit_is_counts_more_than_its_place() -> None:
    words = [Scored(1, 20.0), Scored(2, 5.0), Scored(3, 4.0), Scored(4, 0.0)]
    meaning = [Scored(2, 0.81), Scored(3, 0.80), Scored(1, 0.79), Scored(4, 0.5)]
    assert [one.item_id for one in fuse({WORDS: words, MEANING: meaning}, HALVES)] == [1, 2, 3, 4]


def test_a_leg_that_did_not_run_gives_its_weight_to_the_others() -> None:
    words = [Scored(1, 3.0), Scored(2, 1.0)]
    alone = fuse({WORDS: words}, HALVES, {WORDS: 0.0})
    assert [(one.item_id, one.score) for one in alone] == [(1, 1.0), (2, pytest.approx(1 / 3))]
    found_nothing = fuse({WORDS: words, MEANING: []}, HALVES, {WORDS: 0.0})
    assert found_nothing[0].score == 0.5
    assert found_nothing[0].components[MEANING].raw is None
    assert fuse({}, HALVES) == []


def test_a_floor_keeps_small_differences_small() -> None:
    meaning = [Scored(1, 0.90), Scored(2, 0.89)]
    first, second = fuse({MEANING: meaning}, HALVES, {MEANING: 0.69})
    assert first.score - second.score < 0.05
    assert fuse({MEANING: [Scored(1, 0.2)]}, HALVES, {MEANING: 0.5})[0].score == 0.0
    far = [Scored(1, 0.8), Scored(2, 0.6), Scored(3, 0.5)]
    assert [one.score for one in fuse({MEANING: far}, HALVES, {MEANING: 0.69})] == pytest.approx([1.0, 1 / 3, 0.0])


def test_a_leg_without_weight_adds_nothing_and_a_broken_score_is_left_out() -> None:
    legs = {WORDS: [Scored(1, 1.0), Scored(3, float("nan"))], TIME: [Scored(2, 1.0)]}
    assert [one.item_id for one in fuse(legs, HALVES)] == [1]


def test_equal_scores_are_ordered_by_id() -> None:
    assert [one.item_id for one in fuse({WORDS: [Scored(9, 2.0), Scored(4, 2.0)]}, HALVES)] == [4, 9]


def test_every_recipe_weighs_known_legs() -> None:
    assert set(RECIPES) == set(get_args(RecipeName))
    for name, recipe in RECIPES.items():
        assert recipe.name == (name or "balanced")
        assert set(recipe.weights) <= {WORDS, MEANING, TIME, READING}
        assert recipe.candidates_max >= 10
    assert RECIPES["verbatim"].phrases_first
    assert RECIPES["verbatim"].weights[WORDS] > RECIPES["verbatim"].weights[MEANING]
    assert max(RECIPES["temporal"].weights, key=lambda leg: RECIPES["temporal"].weights[leg]) == TIME
    assert RECIPES["code"].word_weight > RECIPES["balanced"].word_weight


NOW = datetime(2026, 5, 20, 15, 0, tzinfo=UTC)  # a Wednesday
NOW_US = int(NOW.timestamp()) * 1_000_000


def days(text: str) -> list[tuple[str, str]]:
    def day(at_us: int) -> str:
        return datetime.fromtimestamp(at_us / 1e6, tz=UTC).strftime("%Y-%m-%d")

    return [(day(one.start_us), day(one.end_us)) for one in intervals(text, NOW_US)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("what happened on 2023-05-07?", [("2023-05-07", "2023-05-08")]),
        ("at 2023-05-07T10:00:00Z", [("2023-05-07", "2023-05-08")]),
        ("since 2023-05", [("2023-05-01", "2023-06-01")]),
        ("am 7.5.2023", [("2023-05-07", "2023-05-08")]),
        ("on 7 May 2023", [("2023-05-07", "2023-05-08")]),
        ("on the 7th of May, 2023", [("2023-05-07", "2023-05-08")]),
        ("May 7, 2023", [("2023-05-07", "2023-05-08")]),
        ("in May 2023", [("2023-05-01", "2023-06-01")]),
        ("Sept. 2024", [("2024-09-01", "2024-10-01")]),
        ("in December", [("2025-12-01", "2026-01-01")]),
        ("in March", [("2026-03-01", "2026-04-01")]),
        ("on 3 June", [("2025-06-03", "2025-06-04")]),
        ("back in 2021", [("2021-01-01", "2022-01-01")]),
        ("yesterday", [("2026-05-19", "2026-05-20")]),
        ("last week", [("2026-05-11", "2026-05-18")]),
        ("this month", [("2026-05-01", "2026-06-01")]),
        ("last month", [("2026-04-01", "2026-05-01")]),
        ("last year", [("2025-01-01", "2026-01-01")]),
        ("3 days ago", [("2026-05-17", "2026-05-18")]),
        ("two months ago", [("2026-03-01", "2026-04-01")]),
        ("in the past 7 days", [("2026-05-13", "2026-05-21")]),
        ("last Monday", [("2026-05-18", "2026-05-19")]),
        ("on wednesday", [("2026-05-13", "2026-05-14")]),
        ("between May 2023 and 2024-02-01", [("2023-05-01", "2023-06-01"), ("2024-02-01", "2024-02-02")]),
        ("30 February 2023", []),
        ("you may go, march on", []),
        ("version 1.2.2023-rc and id-2023", []),
        ("9999 years ago", []),
        ("no time at all", []),
    ],
)
def test_times_in_a_question(text: str, expected: list[tuple[str, str]]) -> None:
    assert days(text) == expected


@given(st.text())
def test_any_text_has_some_times_or_none(text: str) -> None:
    found = intervals(text, NOW_US)
    assert len(found) <= INTERVALS_MAX
    assert all(one.start_us < one.end_us for one in found)


def test_the_number_of_times_is_bounded() -> None:
    assert len(intervals(" ".join(f"in {year}" for year in range(1900, 2000)), NOW_US)) == INTERVALS_MAX


def test_items_inside_an_interval_come_first_and_far_ones_not_at_all() -> None:
    day = 86_400_000_000
    ranking = time_scores(
        [Interval(10 * day, 11 * day)], [(1, [50 * day]), (2, [12 * day]), (3, [0, 10 * day]), (4, [])]
    )
    assert [one.item_id for one in ranking] == [3, 2]
    assert ranking[0].score == 1.0
    assert 0.0 < ranking[1].score < 0.5


def judged(question: str, *texts: tuple[str, float | None]) -> list[Calibrated]:
    """What each text is worth, of a store of these texts with these cosines; best first."""
    return [worth for _, worth in judged_texts(question, *texts)]


def judged_texts(question: str, *texts: tuple[str, float | None]) -> list[tuple[str, Calibrated]]:
    """The texts and what each is worth."""
    asked = query(question)
    stems = [frozenset(document(text).stems) for text, _ in texts]
    words = [Scored(place, coverage(asked, held)) for place, held in enumerate(stems) if coverage(asked, held)]
    meaning = [Scored(place, cosine) for place, (_, cosine) in enumerate(texts) if cosine is not None]
    legs = {WORDS: words, MEANING: meaning} if meaning else {WORDS: words}
    order = fuse(legs, HALVES, {WORDS: 0.0, MEANING: 0.69})
    among = standing(order)
    return [(texts[one.item_id][0], calibrated(evidence(asked, stems[one.item_id], one, among, 0.4))) for one in order]


def test_a_hit_that_says_what_was_asked_is_never_flagged() -> None:
    for cosine in (0.55, 0.7, 0.95, None):
        assert not judged("green tea", ("Ana likes green tea", cosine))[0].below_threshold


def test_the_one_right_memory_of_a_small_store_is_believed_and_an_unrelated_one_is_not() -> None:
    right = judged(
        "Which database do we use?",
        ("We use Postgres as our database", 0.82),
        ("We ship on Fridays", 0.55),
        ("Ana is on leave until May", 0.5),
    )
    assert right[0].probability > 0.5
    assert not right[0].doubtful
    alone = judged("Which database do we use?", ("The database that we use is Postgres", 0.8))
    assert alone[0].probability > 0.5
    for store in ([("We ship on Fridays", 0.45)], [("We ship on Fridays", 0.45), ("Ana is on leave", 0.43)]):
        assert all(one.doubtful for one in judged("capital of France", *store))


def test_how_far_a_hit_is_ahead_is_the_same_whatever_else_was_asked() -> None:
    words, meaning = [Scored(1, 3.0), Scored(2, 1.0)], [Scored(1, 0.8), Scored(2, 0.75), Scored(3, 0.5)]
    plain = {WORDS: words, MEANING: meaning}
    weights = {WORDS: 0.12, MEANING: 0.18, READING: 0.7}
    asked = query("green tea")
    found: list[list[Evidence]] = []
    for legs in (plain, {**plain, READING: [Scored(2, 4.0), Scored(1, -4.0)]}):
        order = lowered(lent(fuse(legs, weights, {WORDS: 0.0, MEANING: 0.69}), []), {2}, 0.5)
        among = standing(order)
        found.append([evidence(asked, (), one, among, 0.4) for one in sorted(order, key=lambda one: one.item_id)])
    assert [(one.ahead, one.ahead_of_fifth) for one in found[0]] == [
        pytest.approx((one.ahead, one.ahead_of_fifth)) for one in found[1]
    ]
    assert found[0][0].ahead > 0.0 > found[0][1].ahead


@given(st.floats(0.3, 1.0), st.floats(0.3, 1.0))
def test_a_hit_without_a_vector_is_judged_as_if_none_had_one(one: float, other: float) -> None:
    texts = ["Ana likes green tea with honey", "Ben drinks green tea", "Tea came on Friday"]
    question = "who likes green tea?"
    alone = dict(judged_texts(question, *[(text, None) for text in texts]))
    among = dict(judged_texts(question, *zip(texts, (None, one, other), strict=True)))
    assert among[texts[0]].probability == pytest.approx(alone[texts[0]].probability)


def test_a_hit_far_behind_in_a_small_store_is_flagged() -> None:
    near, *others = judged(
        "favourite colour",
        ("favorite_color: blue", 0.82),
        *[(f"We ship on day {day} of the month", 0.45 + day / 1000) for day in range(9)],
    )
    assert not near.below_threshold
    assert all(one.below_threshold for one in others)


@given(st.one_of(st.none(), st.floats(-3, 1)), st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.5))
def test_more_evidence_is_never_less_probable(near: float | None, covered: float, more: float, nearer: float) -> None:
    for count in (1, 3, 40, 100_000):
        low = Evidence(near, covered, lead=0.1, ahead=-0.1, ahead_of_fifth=0.2, candidates=count)
        least = calibrated(low).probability
        assert 0.0 < least < 1.0
        if near is not None:  # a nearer hit is further ahead of the others by as much
            assert calibrated(replace(low, nearness=near + nearer, lead=0.1 + nearer)).probability >= least - 1e-12
        further = replace(low, ahead=more - 0.1, ahead_of_fifth=0.2 + more)
        assert calibrated(further).probability >= least - 1e-12
        if near is None:
            assert calibrated(replace(low, coverage=min(1.0, covered + more))).probability >= least - 1e-12


def test_nearness_and_coverage() -> None:
    assert nearness(0.69, 0.69) == 0.0
    assert nearness(1.0, 0.69) == pytest.approx(1.0)
    assert coverage(query("red cats"), ["cat", "dog"]) == 0.5
    assert coverage(query("..."), ["cat"]) == 0.0


def test_an_answer_is_worth_its_best_hit() -> None:
    good, poor = Calibrated(0.4, below_threshold=False, doubtful=False), Calibrated(0.01, False, doubtful=True)
    assert confidence([poor, good]).retrieval_confidence == 0.4
    assert not confidence([poor, good]).abstain
    doubted = confidence([poor])
    assert doubted.abstain
    assert doubted.reason
    nothing = confidence([])
    assert nothing.abstain
    assert nothing.retrieval_confidence == 0.0
    assert nothing.reason != doubted.reason


def test_an_explanation_adds_up() -> None:
    hit = fuse({WORDS: [Scored(1, 3.0)], MEANING: [Scored(1, 0.8), Scored(2, 0.7)]}, HALVES, {WORDS: 0.0})[0]
    numbers = explained(hit, Evidence(0.3, 0.5), 0.2)
    shares = [value for name, value in numbers.items() if name.endswith("_share") and value is not None]
    assert sum(shares) == pytest.approx(hit.score)
    assert numbers["words_raw"] == 3.0
    assert numbers["probability"] == 0.2
