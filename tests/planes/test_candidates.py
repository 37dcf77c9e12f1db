"""What the indexes propose: the best of what may be shown, whatever else crowds them, a page of ids at a time."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from loom.planes import candidates
from loom.planes.candidates import Probe
from loom.storage.indexes import Scored

MANY = 10_000


@dataclass
class Index:
    """Keeps a score for each id, and what it was asked."""

    scores: dict[int, float]
    among: list[int] = field(default_factory=list[int])

    def best(self, count: int, among: Collection[int] | None) -> Sequence[Scored]:
        self.among.append(len(self.scores) if among is None else len(among))
        known = [Scored(one, score) for one, score in self.scores.items() if among is None or one in among]
        return candidates.best_of([known], count)


def paged(ids: Sequence[int], page: int, read: list[int]) -> Iterator[Collection[int]]:
    def rows(after: int, most: int) -> list[tuple[int, int | None]]:
        found = [(one, one) for one in sorted(ids) if one > after][:most]
        read.append(len(found))
        return list(found)

    return candidates.pages(rows, 0, page)


@given(st.sets(st.integers(1, 300)), st.integers(1, 20), st.integers(1, 50))
def test_the_best_of_what_may_be_shown_is_proposed(visible: set[int], count: int, page: int) -> None:
    index = Index({number: (number * 7919 % 101) / 101 for number in range(1, 301)})
    found = candidates.proposed(
        [Probe(index.best, count, count)], lambda ids: set(ids) & visible, lambda: paged(sorted(visible), page, [])
    )
    shown = [one for one in found.lists[0] if one.item_id in found.seen]
    wanted = index.best(count, visible)
    # An index that is half of others' rows still gives its own best; one that is mostly so gives all of the visible.
    assert shown == list(wanted)[: len(shown)]
    assert len(shown) >= min(len(wanted), count - count // 2)


def test_nothing_is_asked_twice_where_most_may_be_shown() -> None:
    index = Index({number: float(number) for number in range(1, 101)})
    found = candidates.proposed([Probe(index.best, 10, 10)], set, lambda: paged([], 10, []))
    assert [one.item_id for one in found.lists[0]] == list(range(100, 90, -1))
    assert index.among == [100]


def test_a_wider_look_comes_before_the_ids_are_read() -> None:
    index = Index({number: float(number) for number in range(1, MANY)})
    read: list[int] = []
    visible = set(range(1, MANY, 5))
    found = candidates.proposed(
        [Probe(index.best, 10, 10)], lambda ids: set(ids) & visible, lambda: paged(sorted(visible), 100, read)
    )
    assert [one.item_id for one in found.lists[0]] == sorted(visible, reverse=True)[:10]
    assert read == []


def test_ids_are_read_a_page_at_a_time() -> None:
    index = Index({number: float(number) for number in range(1, MANY)})
    read: list[int] = []
    visible = list(range(1, 1001))  # the worst, behind thousands that may not be shown
    found = candidates.proposed(
        [Probe(index.best, 10, 10)], lambda ids: set(ids) & set(visible), lambda: paged(visible, 300, read)
    )
    assert [one.item_id for one in found.lists[0]] == list(range(1000, 990, -1))
    assert read == [300, 300, 300, 100]
    assert max(index.among[2:]) == 300


def test_what_may_starve_asks_nobody_anew() -> None:
    index = Index({number: float(number) for number in range(1, 101)})
    probe = Probe(index.best, 10, 10, may_starve=False)
    assert candidates.proposed([probe], lambda ids: set(ids) & {1}, lambda: paged([1], 10, [])).seen == set()
    assert index.among == [100]


def test_a_row_that_does_not_belong_is_passed_over() -> None:
    rows: list[tuple[int, int | None]] = [(1, 1), (2, None), (3, 3), (4, None), (5, None)]

    def read(after: int, most: int) -> list[tuple[int, int | None]]:
        return [row for row in rows if row[0] > after][:most]

    assert [list(page) for page in candidates.pages(read, 0, 2)] == [[1], [3]]
