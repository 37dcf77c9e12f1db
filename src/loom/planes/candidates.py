"""What the indexes propose of what a reader may see, for every plane's search.

An index knows ids alone, so the rows decide what may be shown. Where the index's best are mostly
of others, it is asked for more, and then among the visible alone, whose ids are read a page at a time:
memory is bounded however many rows there are, and no visible hit is crowded out.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from loom.storage.indexes import Later, Scored, Shelf, TextQuery, Vector
from loom.storage.interface import Transaction

WIDER: Final = 8
"""How many times its usual number an index is asked for, before the visible ids are read."""

PAGE_IDS: Final = 50_000
"""Visible ids that are in memory at once."""

Place = TypeVar("Place")
Seen = TypeVar("Seen", bound=Collection[int])

Best = Callable[[int, Collection[int] | None], Sequence[Scored]]
"""The best so many items of an index, best first, of equal scores the newer first; among some ids only, where given."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to one index.

    Attributes:
        best: asks it.
        count: how many it is asked for.
        looked_at: the first so many are candidates, whose rows are read; the rest are scores.
        may_starve: whether others' rows may not crowd it.
        begin: begins `best` of so many among all, beside the other probes; None where there is nothing to gain.
    """

    best: Best
    count: int
    looked_at: int
    may_starve: bool = True
    begin: Callable[[int], Later] | None = None


@dataclass(frozen=True, slots=True)
class Proposed(Generic[Seen]):
    """What each probe found, in their order, and what of its candidates may be shown."""

    lists: Sequence[Sequence[Scored]]
    seen: Seen


def proposed(
    probes: Sequence[Probe],
    seen: Callable[[Collection[int]], Seen],
    visible: Callable[[], Iterator[Collection[int]]],
    *,
    narrow: bool = False,
) -> Proposed[Seen]:
    """Ask the indexes.

    Args:
        probes: what to ask them.
        seen: those of some ids that may be shown.
        visible: pages of all ids that may be shown.
        narrow: whether little may be shown, so that the visible ids are read at once.
    """
    if not narrow:
        lists = _first(probes)
        found = seen(_candidates(probes, lists))
        if not any(map(_starved, probes, lists, [found] * len(probes))):
            return Proposed(lists, found)
        wide = [probe.best(WIDER * probe.count, None) for probe in probes]
        shown = seen({one.item_id for scored in wide for one in scored})
        kept = [_visible(scored, shown, probe.count) for probe, scored in zip(probes, wide, strict=True)]
        if all(map(_enough, probes, wide, kept)):
            return Proposed(kept, seen(_candidates(probes, kept)))
    lists = _among(probes, visible())
    return Proposed(lists, seen(_candidates(probes, lists)))


def pages(
    read: Callable[[Place, int], Sequence[tuple[Place, int | None]]], start: Place, page: int = PAGE_IDS
) -> Iterator[Collection[int]]:
    """Ids in pages.

    Args:
        read: the next rows after a place, at most so many: each one's own place, and its id or None where the
            row shows only when it is read that it does not belong.
        start: before the first place.
        page: how many ids a page has.
    """
    while True:
        rows = read(start, page)
        ids = [item_id for _, item_id in rows if item_id is not None]
        if ids:
            yield ids
        if len(rows) < page:
            return
        start = rows[-1][0]


def best_of(lists: Iterable[Sequence[Scored]], count: int) -> list[Scored]:
    """The best of several lists of different items, in the order of one."""
    return sorted((one for scored in lists for one in scored), key=lambda one: (-one.score, -one.item_id))[:count]


def by_words(
    tx: Transaction, shelf: Shelf, query: TextQuery | None, count: int, *, looked_at: int = 0, may_starve: bool = True
) -> Probe:
    """What is found by words; nothing without a query. As many are looked at as are asked for, where none is given."""

    def best(most: int, among: Collection[int] | None) -> Sequence[Scored]:
        return () if query is None else tx.text.best(shelf, query, most, among)

    return Probe(best, count, looked_at or count, may_starve)


def by_meaning(tx: Transaction, shelf: Shelf, space: str, vector: Vector | None, count: int) -> Probe:
    """What is found by meaning; nothing without a vector."""
    if vector is None:
        return Probe(lambda _most, _among: (), count, count)

    def best(most: int, among: Collection[int] | None) -> Sequence[Scored]:
        return tx.vectors.best(shelf, space, vector, most, among)

    return Probe(best, count, count, begin=lambda most: tx.vectors.begin(shelf, space, vector, most))


def _first(probes: Sequence[Probe]) -> list[Sequence[Scored]]:
    """What each probe finds among all. Those that can go on beside others begin first and are waited for last."""
    begun = [None if probe.begin is None else probe.begin(probe.count) for probe in probes]
    now = [probe.best(probe.count, None) if later is None else () for probe, later in zip(probes, begun, strict=True)]
    return [found if later is None else later() for found, later in zip(now, begun, strict=True)]


def _among(probes: Sequence[Probe], visible: Iterable[Collection[int]]) -> list[Sequence[Scored]]:
    lists: list[Sequence[Scored]] = [[] for _ in probes]
    for ids in visible:
        for place, probe in enumerate(probes):
            lists[place] = best_of((lists[place], probe.best(probe.count, ids)), probe.count)
    return lists


def _candidates(probes: Sequence[Probe], lists: Sequence[Sequence[Scored]]) -> set[int]:
    return {one.item_id for probe, scored in zip(probes, lists, strict=True) for one in scored[: probe.looked_at]}


def _starved(probe: Probe, scored: Sequence[Scored], seen: Collection[int]) -> bool:
    """Whether an index had more to give, and half of its candidates may not be shown."""
    most = probe.looked_at
    shown = sum(one.item_id in seen for one in scored[:most])
    return probe.may_starve and len(scored) >= most and shown < most - most // 2


def _visible(scored: Sequence[Scored], seen: Collection[int], count: int) -> Sequence[Scored]:
    return [one for one in scored if one.item_id in seen][:count]


def _enough(probe: Probe, wide: Sequence[Scored], kept: Sequence[Scored]) -> bool:
    """Whether the visible ones among many are the best visible ones of all."""
    return not probe.may_starve or len(kept) >= probe.count or len(wide) < WIDER * probe.count
