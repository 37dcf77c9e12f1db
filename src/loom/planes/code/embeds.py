"""The job that gives symbols their vectors, some at a time; and the sweep that finds what was left."""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, cast

from loom.access import namespaces
from loom.jobs import outbox
from loom.jobs.handlers import Bench
from loom.jobs.vectored import Meant, Vectored, note_held
from loom.planes.code import store, symbols, texts
from loom.planes.code.store import READY, Repository
from loom.planes.code.symbols import Held
from loom.storage.indexes import Shelf
from loom.storage.interface import Transaction

EMBED: Final = "code.embed"
EMBED_TIMEOUT_S: Final = 60.0
AT_ONCE: Final = 32
SLICE_S: Final = 5.0
REPOSITORIES_MAX: Final = 1_000
TOTAL: Final = """
SELECT count(*) AS total FROM code_symbol s
JOIN code_repository r ON r.org = s.org AND r.namespace = s.namespace
WHERE s.org = :org AND r.vectors = 1
"""
AFTER: Final = """
SELECT s.item_id, s.namespace FROM code_symbol s
JOIN code_repository r ON r.org = s.org AND r.namespace = s.namespace
WHERE s.org = :org AND s.item_id > :after AND r.vectors = 1 ORDER BY s.item_id LIMIT :most
"""
PLACES: Final = "SELECT item_id, namespace FROM code_symbol WHERE org = :org AND item_id IN (:ids)"


def step(bench: Bench, org: str, subjects: Sequence[str]) -> None:
    """The job `code.embed`: subjects are repositories' numbers.

    Raises:
        EmbedderFailed: the model gave no vectors; what was done is kept.
    """
    space = bench.embedder.space.fingerprint
    for subject in subjects:
        with bench.database.transaction(org, write=True) as tx:
            repository = store.by_id(tx, int(subject))
            if repository is None or not repository.vectors:
                continue
            tx.run(symbols.OTHER_SPACES, namespace=repository.namespace, space=space)
        until_s = time.monotonic() + SLICE_S
        while _few(bench, org, repository, space):
            if time.monotonic() > until_s:
                with bench.database.transaction(org, write=True) as tx:
                    outbox.enqueue(tx, EMBED, subject)
                break


def _few(bench: Bench, org: str, repository: Repository, space: str) -> bool:
    """Embed the next few; whether there were any."""
    namespace = repository.namespace
    with bench.database.transaction(org, write=False) as tx:
        held = symbols.unembedded(tx, namespace, AT_ONCE)
        ids = [one.item_id for one in held]
        # A reindex may have made some already.
        missing = set(tx.vectors.missing(symbols.shelf(namespace), space, ids))
        wanting = [one for one in held if one.item_id in missing]
        passages = passages_of(tx, namespace, wanting)
    if not held:
        return False
    vectors = bench.embedder.embed_passages(passages, EMBED_TIMEOUT_S) if passages else []
    with bench.database.transaction(org, write=True) as tx:
        namespaces.enter(tx, namespace)
        there = symbols.by_ids(tx, namespace, ids)
        for one, vector in zip(wanting, vectors, strict=True):
            if one.item_id in there:  # a symbol never changes: a changed file's are new ones
                tx.vectors.put(symbols.shelf(namespace), one.item_id, space, [vector])
        tx.run(symbols.EMBEDDED, namespace=namespace, space=space, ids=list(there) or [0])
    return True


def passages_of(tx: Transaction, namespace: str, held: Sequence[Held]) -> list[str]:
    """What the embedder reads of each symbol."""
    files = store.files_by_id(tx, namespace, sorted({one.file_id for one in held}))
    lines = {file_id: file.lines() for file_id, file in files.items()}
    return [
        texts.meaning_of(
            one.qualified,
            one.docstring,
            lines.get(one.file_id, [])[one.start_line - 1 : one.end_line],
        )
        for one in held
    ]


def embed_rest(bench: Bench, org: str) -> None:
    """Ask for the vectors that are missing: those of another model, and those whose job was lost."""
    space = bench.embedder.space.fingerprint
    with bench.database.transaction(org, write=False) as tx:
        wanting = [
            one
            for one in store.every(tx, REPOSITORIES_MAX)
            if one.vectors
            and one.state == READY
            and tx.row(symbols.ANY_UNEMBEDDED, namespace=one.namespace, space=space) is not None
        ]
    if wanting:
        with bench.database.transaction(org, write=True) as tx:
            for one in wanting:
                outbox.enqueue(tx, EMBED, str(one.repository_id))


def _count(tx: Transaction) -> int:
    row = tx.row(TOTAL)
    return cast("int", row["total"]) if row else 0


def _after(tx: Transaction, after: int, most: int) -> Sequence[tuple[int, Shelf]]:
    rows = tx.rows(AFTER, after=after, most=most)
    return [(cast("int", row["item_id"]), symbols.shelf(cast("str", row["namespace"]))) for row in rows]


def _read(tx: Transaction, ids: Sequence[int]) -> Sequence[Meant]:
    found: list[Meant] = []
    for namespace, own in _by_namespace(tx, ids).items():
        held = list(symbols.by_ids(tx, namespace, own).values())
        passages = passages_of(tx, namespace, held)
        shelf = symbols.shelf(namespace)
        found += [Meant(one.item_id, shelf, [passage]) for one, passage in zip(held, passages, strict=True)]
    return found


def _by_namespace(tx: Transaction, ids: Sequence[int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in tx.rows(PLACES, ids=list(ids)) if ids else ():
        found[cast("str", row["namespace"])].append(cast("int", row["item_id"]))
    return found


def adopt(bench: Bench, org: str) -> None:
    """Note which symbols have vectors of the embedder's space."""
    space = bench.embedder.space.fingerprint

    def note(tx: Transaction, shelf: Shelf, ids: Sequence[int]) -> None:
        tx.run(symbols.EMBEDDED, namespace=shelf.namespace, space=space, ids=list(ids))

    note_held(bench, org, _after, note)


VECTORED = Vectored("code", _count, _after, _read, adopt)
