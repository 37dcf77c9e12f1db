"""What has vectors, told plane by plane, so that all of it can be made anew in another space.

A plane that puts vectors into the index has a `Vectored` beside the job that makes them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from loom.jobs.handlers import Bench
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction


@dataclass(frozen=True, slots=True)
class Meant:
    """One item and what its vectors are of.

    Attributes:
        item_id: names it in the index.
        shelf: where it is indexed.
        passages: a vector each, in order.
    """

    item_id: int
    shelf: Shelf
    passages: Sequence[str]


ADOPTED_AT_ONCE: Final = 1_000

After = Callable[[Transaction, int, int], Sequence[tuple[int, Shelf]]]
"""The ids and shelves of the next items above an id, by rising id, at most so many."""


def note_held(bench: Bench, org: str, after: After, note: Callable[[Transaction, Shelf, Sequence[int]], None]) -> None:
    """Have `note` told which items of each shelf have vectors of the embedder's space, some at a time."""
    space, last = bench.embedder.space.fingerprint, 0
    while True:
        with bench.database.transaction(org, write=False) as tx:
            page = after(tx, last, ADOPTED_AT_ONCE)
        if not page:
            return
        last = page[-1][0]
        with bench.database.transaction(org, write=True) as tx:
            for shelf in {shelf for _, shelf in page}:
                ids = [item_id for item_id, its in page if its == shelf]
                missing = set(tx.vectors.missing(shelf, space, ids))
                held = [item_id for item_id in ids if item_id not in missing]
                if held:
                    note(tx, shelf, held)


def _nothing(bench: Bench, org: str) -> None:
    del bench, org


@dataclass(frozen=True, slots=True)
class Vectored:
    """A plane's items that have vectors, or want them.

    Attributes:
        name: the plane.
        count: about how many items an org has.
        after: the next items; some may turn out to have no passages.
        read: what items of these ids say; those that are gone or have no passages are left out.
        adopt: where the plane notes itself which vectors there are: notes those of the embedder's space that it finds.
    """

    name: str
    count: Callable[[Transaction], int]
    after: After
    read: Callable[[Transaction, Sequence[int]], Sequence[Meant]]
    adopt: Callable[[Bench, str], None] = _nothing
