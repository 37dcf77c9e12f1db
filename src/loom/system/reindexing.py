"""Makes every vector of the store anew in another embedding space, beside the old ones, and then switches over.

Servers go on meanwhile with the space that they have. What they write drops the new space's vectors of the same item,
so nothing outlives its text, and the next pass makes them again: passes go on until one finds next to nothing. Then the
record is switched in one transaction, which the servers see within a second or so (`guard`). What they wrote until
then is found by passes after the switch. Only then do the old vectors go, some at a time.

All that was done is in the store, so after a crash the same command goes on where it stopped.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from loom.access import namespaces
from loom.jobs.handlers import Bench
from loom.jobs.vectored import Meant, Vectored
from loom.models.interface import EmbedderFailed
from loom.storage.indexes import Vector
from loom.storage.interface import StoreError
from loom.system.spaces import Spaces, told

PAGE: Final = 512
"""Items whose vectors are looked up at once."""

ITEMS_AT_ONCE: Final = 64
PASSAGES_AT_ONCE: Final = 128
"""Passages that one call of the embedder takes."""

EMBED_TIMEOUT_S: Final = 300.0
ATTEMPTS_MAX: Final = 5
BACKOFF_S: Final = 1.0
PASSES_MAX: Final = 50
"""Passes before the switch, and as many after it."""

LEFT_MAX: Final = 64
"""A store that is written to all the time never has a quiet pass: with so few items the switch is near enough."""

SETTLE_S: Final = 10.0
"""How long after the switch a last write of the old space may come: servers look at the record every second."""

DROPPED_AT_ONCE: Final = 1_000
PROBE: Final = "Does the model answer?"

Show = Callable[[str, int, int], None]
"""Told what is done, how many items are through and how many there are."""


class ReindexFailed(Exception):
    """The reindex stopped; what was done is kept. The message says why, and holds no stored text."""


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What became of it.

    Attributes:
        items: how many items got vectors.
        refused: how many the embedder gives none, and does others; they are found by words.
        dropped: how many vectors of other spaces went.
    """

    items: int
    refused: int
    dropped: int


@dataclass
class Reindex:
    """One run. Its bench has the embedder of the new space, with no guard around it.

    Attributes:
        bench: what it works with.
        spaces: the store's record.
        planes: everything that has vectors.
        show: told of progress.
        anew: whether to forget first what there is in that space: its model was changed behind its name. What a run
            that did so and was stopped has made since is kept.
        may_switch: whether the store may be switched to another model by it.
        settle_s: how long after the switch to wait for what is still under way.
        wait: waits for so many seconds.
    """

    bench: Bench
    spaces: Spaces
    planes: Sequence[Vectored]
    show: Show
    anew: bool = False
    may_switch: bool = True
    settle_s: float = SETTLE_S
    wait: Callable[[float], None] = time.sleep
    _items: int = 0
    _refused: set[tuple[str, str, int]] = field(default_factory=set[tuple[str, str, int]])

    def run(self) -> Reindexed:
        """Do it, or go on with it.

        Raises:
            ReindexFailed: the embedder does not answer, or another reindex began.
            StoreError: the store cannot serve.
        """
        space = self.bench.embedder.space
        serving = self.spaces.book().serving
        if serving not in (None, space) and not self.may_switch:
            raise StoreError(
                f"The store's vectors are of {told(serving)}, and the setting embedder names {told(space)}:"
                " to switch to that, name it with --embedder."
            )
        if serving is None and set(self.spaces.held()) <= {space.fingerprint}:
            self.spaces.adopt(space)
        if self.spaces.build(space, anew=self.anew):
            self._drop({name for name in self.spaces.held() if name != space.fingerprint}, "clearing")
            self.spaces.cleared(space, anew=self.anew)
        changes = self.spaces.book().serving != space
        self._passes("embedding", LEFT_MAX if changes else 0)
        if changes:
            if not self.spaces.switch(space):
                raise ReindexFailed("another reindex began meanwhile; this one has stopped")
            self.show("waiting for servers to notice", 0, 0)
            self.wait(self.settle_s)
        self._passes("catching up", 0)
        for org in self.bench.database.orgs():
            for plane in self.planes:
                plane.adopt(self.bench, org)
        dropped = self._drop({space.fingerprint}, "dropping old vectors")
        # A write of the old space that waited long for its locks may have come meanwhile.
        self._passes("looking once more", 0)
        self.spaces.finish(space)
        self.bench.database.maintain()
        return Reindexed(self._items, len(self._refused), dropped)

    def _passes(self, what: str, left_max: int) -> None:
        for _ in range(PASSES_MAX):
            if self._pass(what) <= left_max:
                return

    def _pass(self, what: str) -> int:
        """Go through everything once; for how many items vectors were made."""
        orgs = self.bench.database.orgs()
        total = sum(self._count(org) for org in orgs)
        seen = made = 0
        for org in orgs:
            for plane in self.planes:
                after = 0
                while True:
                    page, missing = self._page(org, plane, after)
                    if not page:
                        break
                    self._need_turn()
                    seen += len(page) - len(missing)
                    self.show(what, seen, max(total, seen))
                    for start in range(0, len(missing), ITEMS_AT_ONCE):
                        few = missing[start : start + ITEMS_AT_ONCE]
                        made += self._embed(org, plane, few)
                        seen += len(few)
                        self.show(what, seen, max(total, seen))
                    after = page[-1]
        return made

    def _count(self, org: str) -> int:
        with self.bench.database.transaction(org, write=False) as tx:
            return sum(plane.count(tx) for plane in self.planes)

    def _page(self, org: str, plane: Vectored, after: int) -> tuple[list[int], list[int]]:
        """The next ids, and those of them that have no vector in the new space and may get one."""
        space = self.bench.embedder.space.fingerprint
        with self.bench.database.transaction(org, write=False) as tx:
            page = plane.after(tx, after, PAGE)
            missing: list[int] = []
            for shelf in {shelf for _, shelf in page}:
                missing += tx.vectors.missing(shelf, space, [item_id for item_id, its in page if its == shelf])
        wanted = sorted(one for one in missing if (org, plane.name, one) not in self._refused)
        return [item_id for item_id, _ in page], wanted

    def _need_turn(self) -> None:
        """Stop when another reindex has begun."""
        book = self.spaces.book()
        if self.bench.embedder.space not in (book.building, book.serving):
            raise ReindexFailed("another reindex began meanwhile; this one has stopped")

    def _embed(self, org: str, plane: Vectored, ids: Sequence[int]) -> int:
        """Make the vectors of some items; for how many. Of a text that changed meanwhile the next pass makes them."""
        with self.bench.database.transaction(org, write=False) as tx:
            items = [item for item in plane.read(tx, ids) if item.passages]
        made = self._vectors(org, plane, items)
        by_namespace: dict[str, list[Meant]] = defaultdict(list)
        for item in items:
            if item.item_id in made:
                by_namespace[item.shelf.namespace].append(item)
        for namespace, few in by_namespace.items():
            with self.bench.database.transaction(org, write=True) as tx:
                # Whoever changes an item is in its namespace: now nobody is, and nobody comes in.
                namespaces.close(tx, namespace)
                now = {item.item_id: item for item in plane.read(tx, [item.item_id for item in few])}
                for item in few:
                    if now.get(item.item_id) == item:
                        space = self.bench.embedder.space.fingerprint
                        tx.vectors.add(item.shelf, item.item_id, space, made[item.item_id])
                        self._items += 1
        return len(made)

    def _vectors(self, org: str, plane: Vectored, items: Sequence[Meant]) -> dict[int, list[Vector]]:
        """The vectors of each item, by its id; an item that the embedder refuses alone is left out from now on."""
        try:
            return self._together(items)
        except EmbedderFailed as failure:
            reason = failure
        made: dict[int, list[Vector]] = {}
        for item in items:
            try:
                made |= self._together([item], attempts=1)
            except EmbedderFailed as failure:
                self._need_answer(failure)
                self._refused.add((org, plane.name, item.item_id))
        if not made:
            self._need_answer(reason)
        return made

    def _need_answer(self, failure: EmbedderFailed) -> None:
        try:
            self.bench.embedder.embed_passages([PROBE], EMBED_TIMEOUT_S)
        except EmbedderFailed:
            raise ReindexFailed(str(failure)) from None

    def _together(self, items: Sequence[Meant], attempts: int = ATTEMPTS_MAX) -> dict[int, list[Vector]]:
        flat = [passage for item in items for passage in item.passages]
        vectors: list[Vector] = []
        for start in range(0, len(flat), PASSAGES_AT_ONCE):
            vectors += self._tried(flat[start : start + PASSAGES_AT_ONCE], attempts)
        following = iter(vectors)
        return {item.item_id: [next(following) for _ in item.passages] for item in items}

    def _tried(self, passages: Sequence[str], attempts: int) -> list[Vector]:
        for attempt in range(attempts - 1):
            try:
                return self.bench.embedder.embed_passages(passages, EMBED_TIMEOUT_S)
            except EmbedderFailed:
                self.wait(BACKOFF_S * 2**attempt)
        return self.bench.embedder.embed_passages(passages, EMBED_TIMEOUT_S)

    def _drop(self, keep: set[str], what: str) -> int:
        """Take out the vectors of other spaces, some at a time; how many there were."""
        dropped = 0
        for org in self.bench.database.orgs():
            while True:
                with self.bench.database.transaction(org, write=True) as tx:
                    count = tx.vectors.drop_others(keep, DROPPED_AT_ONCE)
                if not count:
                    break
                dropped += count
                self.show(what, dropped, 0)
        return dropped
