"""What a write makes ready with the model before its transaction opens."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from loom.ledger import embedding, indexing, rules, store
from loom.ledger.indexing import Embedded
from loom.ledger.rules import NORMAL, PROFILE, Draft, Item
from loom.models.interface import Embedder, EmbedderFailed
from loom.planes.memory import select
from loom.planes.memory.select import Filter
from loom.retrieval import tokens, values
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction

MANY_TIMEOUT_S = 60.0
"""How long a call that writes many waits for the embedder before it leaves the vectors to a job."""

TWINS_LOOKED_AT = 10
TWIN_NEARNESS_MIN = 0.6
"""How far from unrelated (0) to equal (1) two texts are in meaning before they can be twins; their keys differ."""

TWIN_OVERLAP_MIN = 0.8
"""The share of words that the values of twins have in common."""


class Desk(Protocol):
    """What is made ready with: a model and short reads. A `Prepare` is one."""

    @property
    def embedder(self) -> Embedder:
        """Turns text into vectors."""
        ...

    def read(self, org: str) -> AbstractContextManager[Transaction]:
        """A read transaction; closed before a model is called."""
        ...


@dataclass(frozen=True, slots=True)
class Twin:
    """A live memory under another key that says the same."""

    memory_key: str
    memory_id: str
    agent: str
    user_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Ready:
    """What was made ready for one write.

    Attributes:
        text: the searchable text that `vectors` are of.
        vectors: None when the write needs none or the embedder gave none.
        failed: whether the embedder failed.
        twin: a memory that says the same.
    """

    text: str = ""
    vectors: Embedded | None = None
    failed: bool = False
    twin: Twin | None = None

    def for_draft(self, memory_key: str, made: Draft) -> Embedded | None:
        """The vectors, if they are of what is now written; None has a job make them."""
        return self.vectors if self.text and self.text == text_of(memory_key, made) else None


NOTHING = Ready()


def text_of(memory_key: str, made: Draft) -> str:
    """The text under which a draft will be found; empty when it will not be."""
    if made.attributes.sensitivity != NORMAL:
        return ""
    return values.searchable(memory_key, made.value, made.attributes.tags)


def made_ready(embedder: Embedder, texts: Sequence[str], timeout_s: float) -> list[Ready]:
    """Each text's vectors, in order; an empty text needs none. A failing embedder is no failure of the write."""
    wanted = [text for text in texts if text]
    try:
        vectors = iter(embedding.embedded(embedder, wanted, timeout_s) if wanted else [])
    except EmbedderFailed:
        return [Ready(text, failed=bool(text)) for text in texts]
    return [Ready(text, next(vectors)) if text else NOTHING for text in texts]


def twin_of(prepare: Desk, org: str, where: Filter, memory_key: str, made: Draft, ready: Ready) -> Twin | None:
    """A memory the writer may see that says the same under another key, or None."""
    if ready.vectors is None or not ready.vectors.vectors or made.attributes.memory_type == PROFILE:
        return None
    shelf = Shelf(indexing.MEMORY_SHELF, where.namespaces[0])
    unrelated = prepare.embedder.random_cosine
    floor = unrelated + TWIN_NEARNESS_MIN * (1.0 - unrelated)
    with prepare.read(org) as tx:
        near = tx.vectors.best(shelf, ready.vectors.space, ready.vectors.vectors[0], TWINS_LOOKED_AT)
        close = {one.item_id: one.score for one in near if one.score >= floor}
        rows = select.by_ids(tx, where, list(close))
    own = frozenset(tokens.document(values.value_text(made.value)).words)
    twins = [
        Twin(item.memory_key, item.memory_id, item.place.agent, item.place.user_id, round(close[item.item_id], 4))
        for item in rows
        if item.memory_key != memory_key and overlap(own, words_of(item)) >= TWIN_OVERLAP_MIN
    ]
    return max(twins, key=lambda twin: (twin.similarity, twin.memory_id), default=None)


def words_of(item: Item) -> frozenset[str]:
    """The words of an item's value."""
    return frozenset(tokens.document(values.value_text(select.value_of(item.head))).words)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of words that both have, of the words that either has."""
    return len(one & other) / len(one | other) if one or other else 1.0


def current(prepare: Desk, org: str, place: rules.Place, memory_key: str) -> Item | None:
    """The row of exactly this place as it is now, live or not."""
    with prepare.read(org) as tx:
        return store.exact(tx, place, memory_key)
