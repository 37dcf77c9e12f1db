"""What has vectors, told plane by plane, so that all of it can be made anew in another space.

A plane that puts vectors into the index has a `Vectored` beside the job that makes them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


def _nothing(bench: Bench, org: str) -> None:
    del bench, org


@dataclass(frozen=True, slots=True)
class Vectored:
    """A plane's items that have vectors, or want them.

    Attributes:
        name: the plane.
        count: about how many items an org has.
        after: the ids and shelves of the next items above an id, by rising id, at most so many. Some may turn out to
            have no passages.
        read: what items of these ids say; those that are gone or have no passages are left out.
        adopt: where the plane notes itself which vectors there are: notes those of the embedder's space that it finds.
    """

    name: str
    count: Callable[[Transaction], int]
    after: Callable[[Transaction, int, int], Sequence[tuple[int, Shelf]]]
    read: Callable[[Transaction, Sequence[int]], Sequence[Meant]]
    adopt: Callable[[Bench, str], None] = _nothing
