"""How turns get into the indexes and out of them, and their vectors made by a job.

What was said and what went on beside it stand on two shelves, so that the one
ranks without the other. Only what was said has vectors.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from loom.access import namespaces
from loom.jobs import outbox
from loom.jobs.handlers import Bench
from loom.jobs.vectored import Meant, Vectored
from loom.models.interface import Embedder, EmbedderFailed
from loom.planes.conversation import rules, store
from loom.planes.conversation.store import Session, Turn
from loom.retrieval import tokens
from loom.retrieval.passages import split_passages
from loom.storage.indexes import Shelf, Vector
from loom.storage.interface import Transaction

SAID_SHELF: Final = "conversation"
ASIDE_SHELF: Final = "conversation_aside"

EMBED: Final = "conversation.embed"
"""The job that makes a conversation's missing vectors; its subject is the conversation's number."""

PURGE: Final = "conversation.purge"
"""The job that takes out what is left of a deleted conversation; its subject is number, colon, namespace."""

WRITE_TIMEOUT_S: Final = 10.0
PASSAGES_AT_ONCE: Final = 64
"""Passages of one call of the embedder in the job."""

PASSAGES_INLINE_MAX: Final = 32
"""Passages that an append embeds itself; more are left to the job, and the append does not wait for them."""

EMBED_TIMEOUT_S: Final = 60.0
JOB_S: Final = 20.0
"""How long the job goes on before it makes room for others: well below the minute that it is leased for."""

LOOKED_AT: Final = 256
"""Turns that the job looks at in one read."""

PURGED_AT_ONCE: Final = 1_000

TOTAL: Final = "SELECT count(*) AS total FROM conversation_turn WHERE org = :org AND spoken = 1"
AFTER: Final = """
SELECT t.item_id, s.namespace FROM conversation_turn t
JOIN conversation_session s ON s.org = t.org AND s.session_key = t.session_key
WHERE t.org = :org AND t.item_id > :after AND t.spoken = 1 ORDER BY t.item_id LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """Vectors of what is said, by message text; empty when they are left to the job.

    Attributes:
        space: the embedding space.
        vectors: by the text that they are of.
        failed: whether the embedder failed.
    """

    space: str
    vectors: Mapping[str, Sequence[Vector]]
    failed: bool = False


def said_shelf(namespace: str) -> Shelf:
    """Where what was said in a namespace is indexed."""
    return Shelf(SAID_SHELF, namespace)


def aside_shelf(namespace: str) -> Shelf:
    """Where what went on beside it is indexed."""
    return Shelf(ASIDE_SHELF, namespace)


def made_ready(embedder: Embedder, texts: Iterable[str]) -> Ready:
    """The vectors of a few texts; none of them when they are many, or the embedder gives none in time."""
    space = embedder.space.fingerprint
    passages = {text: _passages(text) for text in texts}
    if not passages or sum(map(len, passages.values())) > PASSAGES_INLINE_MAX:
        return Ready(space, {})
    try:
        return Ready(space, _vectors(embedder, passages, WRITE_TIMEOUT_S))
    except EmbedderFailed:
        return Ready(space, {}, failed=True)


def index(tx: Transaction, session: Session, turns: Sequence[Turn], ready: Ready) -> None:
    """Put new turns into the indexes; vectors that are not ready are left to the job."""
    said, aside = said_shelf(session.namespace), aside_shelf(session.namespace)
    waiting = False
    for turn in turns:
        if turn.spoken:
            tx.text.put(said, turn.item_id, tokens.document(rules.words_text(turn.speaker, turn.said, turn.said_at)))
            vectors = ready.vectors.get(rules.meaning_text(turn.speaker, turn.said))
            if vectors is None:
                waiting = True
            else:
                tx.vectors.put(said, turn.item_id, ready.space, vectors)
        if turn.aside:
            tx.text.put(aside, turn.item_id, tokens.document(turn.aside))
    if waiting:
        outbox.enqueue(tx, EMBED, str(session.session_key))


def forget(tx: Transaction, namespace: str, turns: Sequence[Turn]) -> None:
    """Take turns out of the indexes and out of the store."""
    said, aside = said_shelf(namespace), aside_shelf(namespace)
    for turn in turns:
        if turn.spoken:
            tx.text.remove(said, turn.item_id)
            tx.vectors.remove(said, turn.item_id)
        if turn.aside:
            tx.text.remove(aside, turn.item_id)
    if turns:
        tx.run(store.DELETE_TURNS, ids=[turn.item_id for turn in turns])


def scrub(tx: Transaction, namespace: str) -> None:
    """Leave no trace of removed text in the indexes' files."""
    tx.text.scrub(said_shelf(namespace))
    tx.text.scrub(aside_shelf(namespace))


def purge_namespace(tx: Transaction, namespace: str) -> int:
    """Remove every conversation of a namespace for good; how many turns went."""
    for shelf in (said_shelf(namespace), aside_shelf(namespace)):
        tx.text.drop(shelf)
        tx.vectors.drop(shelf)
    count = tx.run(store.PURGE_TURNS, namespace=namespace)
    tx.run(store.PURGE_SESSIONS, namespace=namespace)
    return count


def embed_sessions(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `conversation.embed`: what it has no time for, it asks for again."""
    until_s = time.monotonic() + JOB_S
    for place, subject in enumerate(subjects):
        if not _embed_session(bench, org, int(subject), until_s):
            with bench.database.transaction(org, write=True) as tx:
                for left in subjects[place:]:
                    outbox.enqueue(tx, EMBED, left)
            return


def _embed_session(bench: Bench, org: str, session_key: int, until_s: float) -> bool:
    """Make the vectors that a conversation's turns lack; False when time was over first."""
    after = -1
    while True:
        with bench.database.transaction(org, write=False) as tx:
            session = store.sessions(tx, [session_key]).get(session_key)
            turns = store.spoken_after(tx, session_key, after, LOOKED_AT) if session is not None else []
            if session is None or not turns:
                return True
            ids = [turn.item_id for turn in turns]
            shelf = said_shelf(session.namespace)
            missing = set(tx.vectors.missing(shelf, bench.embedder.space.fingerprint, ids))
        for batch in _batches([turn for turn in turns if turn.item_id in missing]):
            _embed_batch(bench, org, shelf, batch)
            if time.monotonic() > until_s:
                return False
        after = turns[-1].seq


def _embed_batch(bench: Bench, org: str, shelf: Shelf, turns: Sequence[Turn]) -> None:
    passages = {one.item_id: _passages_of(one) for one in turns}
    vectors = _vectors(bench.embedder, passages, EMBED_TIMEOUT_S)
    with bench.database.transaction(org, write=True) as tx:
        namespaces.enter(tx, shelf.namespace)
        # A turn's text never changes, but the turn may be gone by now, and its conversation with it.
        there = store.by_ids(tx, list(vectors))
        alive = store.sessions(tx, {turn.session_key for turn in there.values()})
        for item_id, turn in there.items():
            if turn.session_key in alive:
                tx.vectors.put(shelf, item_id, bench.embedder.space.fingerprint, vectors[item_id])


def _batches(turns: Sequence[Turn]) -> Iterable[Sequence[Turn]]:
    """Turns of about as many passages as one call of the embedder takes."""
    batch: list[Turn] = []
    room = PASSAGES_AT_ONCE
    for turn in turns:
        count = len(_passages(turn.said))
        if batch and count > room:
            yield batch
            batch, room = [], PASSAGES_AT_ONCE
        batch.append(turn)
        room -= count
    if batch:
        yield batch


Named = TypeVar("Named", int, str)


def _vectors(
    embedder: Embedder, passages: Mapping[Named, Sequence[str]], timeout_s: float
) -> dict[Named, list[Vector]]:
    """The vectors of each named text's passages, all made together."""
    made = iter(embedder.embed_passages([one for group in passages.values() for one in group], timeout_s))
    return {name: [next(made) for _ in group] for name, group in passages.items()}


def _passages_of(turn: Turn) -> Sequence[str]:
    return _passages(rules.meaning_text(turn.speaker, turn.said))


def _passages(text: str) -> Sequence[str]:
    return split_passages(text) or [""]


def _count(tx: Transaction) -> int:
    row = tx.row(TOTAL)
    return cast("int", row["total"]) if row else 0


def _after(tx: Transaction, after: int, most: int) -> Sequence[tuple[int, Shelf]]:
    rows = tx.rows(AFTER, after=after, most=most)
    return [(cast("int", row["item_id"]), said_shelf(cast("str", row["namespace"]))) for row in rows]


def _read(tx: Transaction, ids: Sequence[int]) -> Sequence[Meant]:
    turns = store.by_ids(tx, ids)
    alive = store.sessions(tx, {turn.session_key for turn in turns.values()})
    return [
        Meant(item_id, said_shelf(alive[turn.session_key].namespace), _passages_of(turn))
        for item_id, turn in turns.items()
        if turn.spoken and turn.session_key in alive
    ]


def purge_sessions(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `conversation.purge`: some turns a transaction, and again until none is left."""
    for subject in subjects:
        number, _, namespace = subject.partition(":")
        with bench.database.transaction(org, write=True) as tx:
            if store.sessions(tx, [int(number)]):
                continue  # an import brought it back
            turns = store.turns_from(tx, int(number), 0, PURGED_AT_ONCE)
            forget(tx, namespace, turns)
            if len(turns) == PURGED_AT_ONCE:
                outbox.enqueue(tx, PURGE, subject)
            else:
                scrub(tx, namespace)


JOBS = {EMBED: embed_sessions, PURGE: purge_sessions}
VECTORED = Vectored("conversation", _count, _after, _read)
